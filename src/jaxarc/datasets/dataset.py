"""One entry of the catalogue: the name of a dataset, what it must hold, and how it is read."""

import dataclasses
from collections.abc import Callable

from jaxarc.datasets.task_set import TaskSet, digest_of


@dataclasses.dataclass(frozen=True)
class DatasetVersion:
    """One version of a dataset; a number that is not pinned is ``None``, a text empty."""

    name: str = ""  # behind the @ of a name
    note: str = ""  # how it differs from the others
    num_tasks: int | None = None
    num_train: int | None = None  # demonstration pairs of all tasks
    num_test: int | None = None  # test pairs of all tasks
    max_grid_shape: tuple[int, int] | None = None  # rows of the highest, columns of the widest grid
    digest: str = ""  # digest_of its tasks


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A dataset that can be loaded by its name; the first version is the default."""

    name: str
    load: Callable[[str], TaskSet]  # from the name of a version
    where: Callable[[], str]  # where its tasks come from on this machine, or "" where they are missing
    description: str = ""
    versions: tuple[DatasetVersion, ...] = (DatasetVersion(),)
    license: str = ""
    homepage: str = ""

    @property
    def version_names(self) -> tuple[str, ...]:
        """Every version by name, the default first; none for a dataset without versions."""
        return tuple(version.name for version in self.versions if version.name)

    def version(self, name: str | None = None) -> DatasetVersion:
        """Return one version, by default the first.

        Raises:
            KeyError: there is no such version.
        """
        if name is None:
            return self.versions[0]
        return {version.name: version for version in self.versions if version.name}[name]


def find_mismatches(version: DatasetVersion, tasks: TaskSet) -> list[str]:
    """Compare tasks with what a version pins, and return one line for each difference."""
    found = {
        "tasks": (version.num_tasks, len(tasks)),
        "train pairs": (version.num_train, sum(len(task.train) for task in tasks)),
        "test pairs": (version.num_test, sum(len(task.test) for task in tasks)),
        "as the largest sides": (version.max_grid_shape, tasks.max_grid_shape),
        "as digest": (version.digest or None, digest_of(tasks)),
    }
    return [
        f"{tasks.name}: expected {wanted} {what}, found {actual}"
        for what, (wanted, actual) in found.items()
        if wanted is not None and wanted != actual
    ]
