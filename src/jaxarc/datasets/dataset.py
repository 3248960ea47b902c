"""One entry of the catalogue: what a dataset is called, what it must hold, and how it is read."""

import dataclasses
from collections.abc import Callable

from jaxarc.datasets.digest import digest_of
from jaxarc.datasets.task_set import TaskSet


@dataclasses.dataclass(frozen=True)
class Edition:
    """One version of a dataset; what is not known beforehand is ``None`` or empty."""

    version: str = ""  # what stands behind the @ of a name
    note: str = ""  # how it differs from the others
    num_tasks: int | None = None
    num_train: int | None = None  # demonstration pairs of all tasks
    num_test: int | None = None  # test pairs of all tasks
    max_grid_shape: tuple[int, int] | None = None  # rows of the highest, columns of the widest grid
    digest: str = ""  # what digest_of gives for its tasks


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A dataset that can be loaded by its name; the first edition is what the plain name means."""

    name: str
    load: Callable[[str, bool], TaskSet]  # from a version, and whether cached tasks will do
    where: Callable[[], str]  # where its tasks come from here, or "" where they are not there
    description: str = ""
    editions: tuple[Edition, ...] = (Edition(),)
    license: str = ""
    homepage: str = ""

    @property
    def versions(self) -> tuple[str, ...]:
        """Every version by name, the default first; none for a dataset without versions."""
        return tuple(edition.version for edition in self.editions if edition.version)

    def edition(self, version: str | None = None) -> Edition:
        """Return one edition, by default the first.

        Raises:
            KeyError: there is no such version.
        """
        if version is None:
            return self.editions[0]
        return {edition.version: edition for edition in self.editions if edition.version}[version]


def contradictions(edition: Edition, tasks: TaskSet) -> list[str]:
    """Say where tasks are not what their edition pins, one line each."""
    found = {
        "tasks": (edition.num_tasks, len(tasks)),
        "train pairs": (edition.num_train, sum(len(task.train) for task in tasks)),
        "test pairs": (edition.num_test, sum(len(task.test) for task in tasks)),
        "as the largest sides": (edition.max_grid_shape, tasks.max_grid_shape),
        "as digest": (edition.digest or None, digest_of(tasks)),
    }
    return [
        f"{tasks.name}: expected {wanted} {what}, found {actual}"
        for what, (wanted, actual) in found.items()
        if wanted is not None and wanted != actual
    ]
