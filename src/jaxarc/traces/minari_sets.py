"""Traces as a data set of Minari, the format of the Farama Foundation for offline reinforcement learning.

An episode is a trace on its pair: observations are the working grid and the target, int8[30, 30] with -1 as padding,
one more than actions; an action is the operation and row and column of a point, ``r1, c1, r2, c2`` of a box, or
int8[30, 30] of a mask; the reward is 1 for the submit that solves. Metadata of an episode name pair, expert, verdict.
"""

import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from jaxarc import constants as c
from jaxarc.errors import JaxarcError
from jaxarc.experts import Pair
from jaxarc.experts.expert import Action, ActionFormat
from jaxarc.experts.host_canvas import HostCanvas
from jaxarc.extras import how_to_install_extra, missing_libraries
from jaxarc.traces.trace_files import TraceLine
from jaxarc.traces.units import ExpertSpec, PairId, Trace, WorkUnit

PREFIX: Final = "minari:"  # of a data set's id, where a file may stand too
_LAYOUT: Final = "jaxarc traces 1"
_SHAPE: Final = (c.MAX_GRID_SIZE, c.MAX_GRID_SIZE)
_COORDINATES: Final = {"point": 2, "bbox": 4}
_ID: Final = re.compile(r"(?:[-\w]{2,}/|[-\w]+(?:/[-\w]+)+/)?[-\w]+-v(0|[1-9][0-9]*)")
_FIELDS: Final = ("task_id", "split", "pair_index", "expert", "version", "settings", "action_format", "dataset")
_EPISODE_BYTES: Final = 2**15  # that HDF5 takes at most for the groups of an episode; seen: 25 kB
_FAILURES: Final = (AssertionError, AttributeError, KeyError, OSError, RuntimeError, TypeError, ValueError)
"""What Minari and h5py raise for a full disk or a damaged file."""


class MinariError(JaxarcError, ValueError):
    """A data set of Minari cannot be written or read, or is of another environment."""


def write_minari(dataset_id: str, traces: Mapping[PairId, Trace], pairs: Mapping[PairId, Pair], dataset: str) -> None:
    """Write traces that solve their pairs into Minari's folder.

    Args:
        dataset_id: of Minari, such as ``jaxarc/painter-v0``.
        traces: all of one action format.
        pairs: at least those of the traces.
        dataset: where the tasks are loaded from.

    Raises:
        MinariError: Minari is not installed, the id is none or is taken, or the disk is full; nothing is left of it.
    """
    minari = _minari()
    _check_id(dataset_id)
    formats: set[ActionFormat] = {trace.spec.action_format for trace in traces.values()}
    (action_format,) = formats
    episodes = [_episode(number, pairs[one], trace) for number, (one, trace) in enumerate(traces.items())]
    spaces = dict(zip(("observation_space", "action_space"), _spaces(action_format), strict=True))
    about = {"algorithm_name": next(iter(traces.values())).spec.expert, "description": _LAYOUT, **spaces}
    metadata = [
        dict(zip(_FIELDS, (*one, *trace.spec[:4], dataset), strict=True)) | {"verdict": "exact"}
        for one, trace in traces.items()
    ]
    try:
        with _new_set(dataset_id, episodes), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that no environment of Gymnasium is stored
            made = minari.create_dataset_from_buffers(dataset_id, episodes, **about)
            made.storage.update_episode_metadata(metadata, range(len(metadata)))
    except MinariError:
        raise
    except _FAILURES as error:
        raise MinariError(
            f"the data set {dataset_id!r} cannot be written: {_line(error)}; make room, or name another folder by "
            "MINARI_DATASETS_PATH"
        ) from error


def _check_id(dataset_id: str) -> None:
    # Minari makes a folder of an id before it reads the version, and cannot list its sets with one that has none, nor
    # with a namespace "data", the name by which it knows the folder of a set.
    if not _ID.fullmatch(dataset_id) or "data" in dataset_id.split("/"):
        raise MinariError(
            f"the id of a data set is NAME-vNUMBER, or NAMESPACE/NAME-vNUMBER with a namespace of two letters or more, "
            f"of letters, digits, - and _, and no part is 'data', got {dataset_id!r}; take one such as "
            "jaxarc/painter-v0"
        )


@contextmanager
def _new_set(dataset_id: str, episodes: Sequence[Any]) -> Iterator[None]:
    """Let Minari write into a hidden folder beside its sets, and move the set to its place when it is whole.

    Raises:
        MinariError: the id is taken.
        OSError: there is no room.
    """
    from minari.storage import get_dataset_path

    root, place = get_dataset_path(), get_dataset_path(dataset_id)
    namespaces = place.relative_to(root).parents[:-1]
    if place.exists():
        raise MinariError(f"Minari has a data set or namespace {dataset_id!r} already; take another id or delete it")
    if taken := [str(one) for one in namespaces if (root / one / "data").exists()]:
        raise MinariError(f"{taken[0]!r} is a data set of Minari, so it is no namespace; take another id")
    with tempfile.TemporaryDirectory(prefix=".jaxarc-", dir=root) as folder:
        _require_room(Path(folder) / "room", episodes)
        known = os.environ.get("MINARI_DATASETS_PATH")
        os.environ["MINARI_DATASETS_PATH"] = os.path.abspath(folder)  # Minari cannot write into a relative one
        try:
            yield
        finally:
            if known is None:
                del os.environ["MINARI_DATASETS_PATH"]
            else:
                os.environ["MINARI_DATASETS_PATH"] = known
        place.parent.mkdir(parents=True, exist_ok=True)
        os.rename(Path(folder) / dataset_id, place)
        for about in (one / "namespace_metadata.json" for one in namespaces):
            if not (root / about).exists():
                shutil.copyfile(Path(folder) / about, root / about)


def _require_room(file: Path, episodes: Sequence[Any]) -> None:
    """Write as many bytes as HDF5 needs at most, and remove them: it ends the process where the disk is full.

    Raises:
        OSError: there is no room.
    """
    grids = sum(len(one.rewards) + 1 for one in episodes) * 3 * np.prod(_SHAPE)  # working grid, target, mask
    needed = 2 * int(grids) + (len(episodes) + 1) * _EPISODE_BYTES
    with file.open("wb") as room:
        for _ in range(0, needed, 2**20):
            room.write(bytes(min(needed, 2**20)))
    file.unlink()


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def read_minari(dataset_id: str) -> Iterator[TraceLine]:
    """Read the traces of a data set that :func:`write_minari` wrote, or that Minari joined of several such.

    Raises:
        MinariError: Minari is not installed, there is no such data set here, it is of another environment, or its
            files are damaged.
    """
    minari = _minari()
    _check_id(dataset_id)
    try:
        found = _load(minari, dataset_id)
        metadata = _metadata(minari, found)
        count = len(metadata)
        for episode, about in zip(found.iterate_episodes(), metadata, strict=True):
            words = {key: str(about[key]) for key in _FIELDS}
            pair_id = PairId(words["task_id"], words["split"], int(about["pair_index"]))
            action_format = cast(ActionFormat, words["action_format"])
            spec = ExpertSpec(words["expert"], int(about["version"]), words["settings"], action_format)
            actions = _actions(episode.actions, action_format)
            where = f"{dataset_id}, episode {episode.id}"
            shown = episode.observations
            pair = Pair(_unpadded(shown["working_grid"][0]), _unpadded(shown["target_grid"][0]))
            yield TraceLine(pair_id, spec, actions, where, words["dataset"], count, WorkUnit(pair, spec).content_hash)
    except MinariError:
        raise
    except _FAILURES as error:
        raise MinariError(
            f"the data set {dataset_id!r} cannot be read: {_line(error)}; delete it, and export it again"
        ) from error


def _load(minari: Any, dataset_id: str) -> Any:
    try:
        return minari.load_dataset(dataset_id)
    except FileNotFoundError as error:
        raise MinariError(f"Minari has no data set {dataset_id!r} here; list them: minari list local") from error


def _metadata(minari: Any, found: Any) -> list[dict[str, Any]]:
    """Return the metadata of each episode; Minari copies none when it joins sets, so those of the parts are taken.

    Raises:
        MinariError: the set is of another environment, or a part of it is not here.
    """
    of_set = found.storage.metadata
    if parts := of_set.get("combined_datasets"):
        return [about for part in parts for about in _metadata(minari, _load(minari, part))]
    described = of_set.get("description")
    if described != _LAYOUT:
        of = described or "an environment without a description" if found.env_spec is None else found.env_spec.id
        raise MinariError(
            f"the data set {of_set['dataset_id']!r} is of {of}, not of jaxarc; it needs one of jaxarc traces export"
        )
    return list(found.storage.get_episode_metadata(range(found.total_episodes)))


def _minari() -> Any:
    if missing := missing_libraries("minari"):
        raise MinariError(f"{', '.join(missing)} is not installed: {how_to_install_extra('minari')}")
    import minari

    return minari


def _spaces(action_format: ActionFormat) -> tuple[Any, Any]:
    from gymnasium import spaces

    grid = lambda: spaces.Box(c.PADDING, c.NUM_COLORS - 1, _SHAPE, np.int8)
    shown = spaces.Dict({"working_grid": grid(), "target_grid": grid()})
    if action_format == "mask":
        operation = spaces.Discrete(c.NUM_OPERATIONS)
        return shown, spaces.Dict({"operation": operation, "selection": spaces.Box(0, 1, _SHAPE, np.int8)})
    return shown, spaces.MultiDiscrete([c.NUM_OPERATIONS] + [c.MAX_GRID_SIZE] * _COORDINATES[action_format])


def _episode(number: int, pair: Pair, trace: Trace) -> Any:
    from minari.data_collector import EpisodeBuffer

    canvas, count, action_format = HostCanvas(pair.input), len(trace.actions), trace.spec.action_format
    grids = [_padded(canvas.grid)]
    for action in trace.actions:
        canvas.apply(action, action_format)
        grids.append(_padded(canvas.grid))
    if action_format == "mask":
        selections = np.zeros((count, *_SHAPE), np.int8)
        for row, action in enumerate(trace.actions):
            selections[row, list(action[1::2]), list(action[2::2])] = 1
        actions: Any = {"operation": np.array([action[0] for action in trace.actions]), "selection": selections}
    else:
        actions = np.array(trace.actions, np.int64)
    last = [index == count - 1 for index in range(count)]
    target = np.broadcast_to(_padded(pair.output), (count + 1, *_SHAPE))
    return EpisodeBuffer(
        id=number,
        observations={"working_grid": np.stack(grids), "target_grid": np.array(target)},
        actions=actions,
        rewards=[float(is_last) for is_last in last],
        terminations=last,
        truncations=[False] * count,
    )


def _actions(values: Any, action_format: ActionFormat) -> tuple[Action, ...]:
    if action_format != "mask":
        return tuple(tuple(row) for row in np.asarray(values).tolist())
    cells = [np.argwhere(selection).ravel().tolist() for selection in values["selection"]]
    return tuple((int(operation), *where) for operation, where in zip(values["operation"], cells, strict=True))


def _unpadded(grid: np.ndarray) -> np.ndarray:
    return grid[: np.sum(grid[:, 0] != c.PADDING), : np.sum(grid[0] != c.PADDING)]


def _padded(grid: np.ndarray) -> np.ndarray:
    full = np.full(_SHAPE, c.PADDING, np.int8)
    full[: grid.shape[0], : grid.shape[1]] = grid
    return full
