"""Whether the processes of a run are about to do the same."""

from typing import Any

import jax

from jaxarc.parallel import digest, require_same
from jaxarc.training.code_revision import code_digest
from jaxarc.training.resuming import fields_of
from jaxarc.training.run_choices import RunChoices
from jaxarc.training.run_folder import library_versions


def require_same_run(experiment: RunChoices) -> None:
    """Compare choices, versions and code between the processes.

    Raises:
        ProcessMismatchError: they differ; names each field with two of its values.
    """
    if jax.process_count() == 1:
        return
    versions = {f"the version of {name}": version for name, version in library_versions().items()}
    require_same({**dict(fields_of(experiment.as_dict())), **versions, "the code of jaxarc": code_digest()})


def require_same_start(learned: Any, measured: Any, state: Any) -> None:
    """Compare the bits of what is learned, what is measured, and the state that learning starts from.

    Raises:
        ProcessMismatchError: other data lie on another machine, or its processor rounds otherwise.
    """
    if jax.process_count() == 1:
        return
    parts = {"the learned tasks": learned, "the measured tasks": measured, "the first state": state}
    require_same({f"the hash of {name}": digest(part) for name, part in parts.items()})
