"""Kinds of what runs learn: agents that edit, agents of games, surrogates.

A kind is a module with the functions of :class:`Kind`. Commands ask ``kind_of(experiment)`` and go down one path. A new
kind is such a module, a row of ``KINDS``, and a folder of presets in ``configs/``.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol, Self, TypeAlias, cast

from jaxarc.config import CheckedConfig, build
from jaxarc.config.agent_training import WhichCheckpoint
from jaxarc.config.choices import EXPERIMENT, SURROGATE
from jaxarc.runs.checkpoint import Checkpoint, CheckpointError
from jaxarc.runs.folder import RunFolder
from jaxarc.runs.loop import Trainable, TrainResult
from jaxarc.runs.presentation import CalibrationPlot, Presentation, Table

Bar: TypeAlias = Callable[[str], AbstractContextManager[Callable[[int, int | None], None]]]
"""From what is counted to a progress bar, which receives how many are done, and of how many."""


class Kind(Protocol):
    """The functions of a kind's module."""

    def session(self, experiment: Any) -> AbstractContextManager[None]:
        """Make the devices that a run learns on, and be one of its processes; raise ConfigValidationError otherwise."""
        ...

    def load(self, experiment: Any) -> Trainable:
        """Load what is learned from and measured; raise ConfigValidationError where there is nothing of the kind."""
        ...

    def prepare(self, trainable: Any, bar: Bar) -> None:
        """Make what takes long and what the loop would otherwise wait for."""
        ...

    def presentation(self, trainable: Any, folder: RunFolder) -> Presentation:
        """Say what is learned from and measured, and how that goes."""
        ...

    def results(
        self, trainable: Any, result: TrainResult, folder: RunFolder
    ) -> Iterable[str | Table | CalibrationPlot]:
        """Yield what a run has reached, and write it down."""
        ...

    def saved(self, run: "SavedRun") -> Any:
        """Return what a run has learned: an agent with ``replayed`` and ``watched``, or what ``evaluate`` measures."""
        ...


@dataclass(frozen=True)
class KindRow:
    """A kind by names, none of which imports it."""

    module: str
    experiment: str  # module:class of its choices
    presets: str  # folder of configs/, and among several kinds the topic that all its configs have
    preset: str  # the default one
    metric: str  # a field of its reports, which jaxarc compare draws
    score: str  # of a run, in the table of a sweep
    samples: str  # the field of its reports that counts what it learned from
    learned: str  # by a run, with fields of its experiment
    loader: str  # from Python
    has_agent: bool = True  # which replay and watch show; jaxarc evaluate RUN measures the others

    @property
    def config(self) -> type[CheckedConfig]:
        """The class of its experiments."""
        module, _, name = self.experiment.partition(":")
        return getattr(import_module(module), name)


_EDIT: Final = KindRow(
    module="jaxarc.agents.editing_kind",
    experiment="jaxarc.agents.experiment:Experiment",
    presets=EXPERIMENT,
    preset="ladder_l2_small",
    metric="evaluation_solve_rate",
    score="unseen solved",
    samples="environment_steps",
    learned="learned to edit grids",
    loader="jaxarc.load_agent",
)
_GAME: Final = replace(
    _EDIT,
    module="jaxarc.agents.games.game_kind",
    learned="learned the game {0.game.name!r}",
    loader="jaxarc.agents.load_game_agent",
)
_SURROGATE: Final = KindRow(
    module="jaxarc.surrogate.surrogate_kind",
    experiment="jaxarc.surrogate.surrogate_experiment:SurrogateExperiment",
    presets=SURROGATE,
    preset="lookahead",
    metric="kl",
    score="held out",
    samples="examples",
    learned="trained a surrogate",
    loader="jaxarc.load_surrogate",
    has_agent=False,
)
KINDS: Final[Mapping[str, KindRow]] = {"edit": _EDIT, "game": _GAME, "surrogate": _SURROGATE}
"""By the ``kind`` of an experiment."""
GROUPS: Final = {row.presets: row for row in reversed(KINDS.values())}
"""Presets -> a kind that is composed of them."""


def kind_of(experiment: Any) -> Kind:
    """Return the kind of what an experiment's run learns."""
    return cast(Kind, import_module(KINDS[experiment.kind].module))


def row_of(topics: Container[str]) -> KindRow:
    """Return a row by the topics of a config: that whose presets are one of them, or the first of the table."""
    return next((row for presets, row in GROUPS.items() if presets in topics), _EDIT)


@dataclass(frozen=True)
class SavedRun:
    """A run by one of its checkpoints, which is chosen and read once.

    A training that saves and removes checkpoints meanwhile changes nothing.
    """

    path: Path
    checkpoint: Checkpoint
    experiment: Any  # by which it learned

    @classmethod
    def open(cls, folder: RunFolder, which: WhichCheckpoint) -> Self:
        """Choose and read a checkpoint.

        Args:
            folder: of the run.
            which: the checkpoint with the highest score, mean over the seeds, or the newest.

        Warns:
            DamagedCheckpointWarning: the checkpoint is damaged, and another one is used.

        Raises:
            CheckpointError: the folder has no checkpoint that can be used.
            ConfigValidationError: the checkpoint's config is not one of this version.
        """
        checkpoints = folder.checkpoints
        checkpoint = checkpoints.best() if which == "best" else checkpoints.newest()
        if checkpoint is None:
            raise CheckpointError(
                f"there is no checkpoint in {checkpoints.path}; name the folder of a run of jaxarc train"
            )
        config = checkpoint.record.config
        return cls(folder.path, checkpoint, build(row_of(config).config, config))

    def require(self, *kinds: str) -> Self:
        """Return it; raise CheckpointError if it learned something of another kind."""
        row = KINDS[self.experiment.kind]
        if self.experiment.kind not in kinds:
            raise CheckpointError(
                f"the run {self.path} {row.learned.format(self.experiment)}; load it with {row.loader}"
            )
        return self

    def require_agent(self) -> Self:
        """Return it; raise CheckpointError if it learned no agent."""
        return self.require(*(name for name, row in KINDS.items() if row.has_agent))
