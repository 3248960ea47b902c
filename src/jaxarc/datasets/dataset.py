"""One entry of the catalogue: what a dataset is called, what it must hold, and how it is read."""

import dataclasses
from collections.abc import Callable

from jaxarc.datasets.digest import digest_of
from jaxarc.datasets.task_set import TaskSet


@dataclasses.dataclass(frozen=True)
class DatasetVersion:
    """One version of a dataset; what is not known beforehand is ``None`` or empty."""

    name: str = ""  # what stands behind the @ of a name
    note: str = ""  # how it differs from the others
    num_tasks: int | None = None
    num_train: int | None = None  # demonstration pairs of all tasks
    num_test: int | None = None  # test pairs of all tasks
    max_grid_shape: tuple[int, int] | None = None  # rows of the highest, columns of the widest grid
    digest: str = ""  # what digest_of gives for its tasks


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A dataset that can be loaded by its name; the first version is what the plain name means."""

    name: str
    load: Callable[[str, bool], TaskSet]  # from a version, and whether cached tasks will do
    where: Callable[[], str]  # where its tasks come from here, or "" where they are not there
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
    """Say where tasks are not what their version pins, one line each."""
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
