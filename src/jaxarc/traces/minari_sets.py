"""Traces as a data set of Minari, the format of the Farama Foundation for offline reinforcement learning.

An episode is a trace on its pair: observations are the working grid and the target, int8[30, 30] with -1 as padding,
one more than actions; an action is the operation and row and column of a point, ``r1, c1, r2, c2`` of a box, or
int8[30, 30] of a mask; the reward is 1 for the submit that solves. Metadata of an episode name pair, expert, verdict.
"""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import numpy as np

from jaxarc import constants as c
from jaxarc.errors import JaxarcError
from jaxarc.experts import Pair
from jaxarc.experts.expert import Action, ActionFormat
from jaxarc.experts.host_canvas import HostCanvas
from jaxarc.extras import how_to_install_extra, missing_libraries
from jaxarc.traces.trace_files import TraceLine
from jaxarc.traces.units import ExpertSpec, PairId, Trace

PREFIX: Final = "minari:"  # of a data set's id, where a file may stand too
_LAYOUT: Final = "jaxarc traces 1"
_SHAPE: Final = (c.MAX_GRID_SIZE, c.MAX_GRID_SIZE)
_COORDINATES: Final = {"point": 2, "bbox": 4}


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
        MinariError: Minari is not installed, or the id is taken.
    """
    minari = _minari()
    if dataset_id in minari.list_local_datasets():
        raise MinariError(f"Minari has a data set {dataset_id!r} already; take another id or delete it")
    formats: set[ActionFormat] = {trace.spec.action_format for trace in traces.values()}
    (action_format,) = formats
    episodes = [_episode(number, pairs[one], trace) for number, (one, trace) in enumerate(traces.items())]
    spaces = dict(zip(("observation_space", "action_space"), _spaces(action_format), strict=True))
    about = {"algorithm_name": next(iter(traces.values())).spec.expert, "description": _LAYOUT, **spaces}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no environment of Gymnasium is stored
        made = minari.create_dataset_from_buffers(dataset_id, episodes, **about)
    metadata = [
        {
            "task_id": one.task_id,
            "split": one.split,
            "pair_index": one.pair_index,
            "verdict": "exact",
            "dataset": dataset,
        }
        | dict(zip(("expert", "version", "settings", "action_format"), trace.spec, strict=False))
        for one, trace in traces.items()
    ]
    made.storage.update_episode_metadata(metadata, range(len(metadata)))


def read_minari(dataset_id: str) -> Iterator[TraceLine]:
    """Read the traces of a data set that :func:`write_minari` wrote.

    Raises:
        MinariError: Minari is not installed, there is no such data set here, or it is of another environment.
    """
    minari = _minari()
    try:
        found = minari.load_dataset(dataset_id)
    except FileNotFoundError as error:
        raise MinariError(f"Minari has no data set {dataset_id!r} here; list them: minari list local") from error
    described = found.storage.metadata.get("description")
    if described != _LAYOUT:
        of = described or "an environment without a description" if found.env_spec is None else found.env_spec.id
        raise MinariError(
            f"the data set {dataset_id!r} is of {of}, not of jaxarc; it needs one of jaxarc traces export"
        )
    count = found.total_episodes
    for episode, about in zip(found.iterate_episodes(), found.storage.get_episode_metadata(range(count)), strict=True):
        words = {key: str(about[key]) for key in ("task_id", "split", "expert", "settings", "action_format", "dataset")}
        pair_id = PairId(words["task_id"], words["split"], int(about["pair_index"]))
        action_format = cast(ActionFormat, words["action_format"])
        spec = ExpertSpec(words["expert"], int(about["version"]), words["settings"], action_format)
        actions = _actions(episode.actions, action_format)
        where = f"{dataset_id}, episode {episode.id}"
        yield TraceLine(pair_id, spec, actions, where, words["dataset"], count)


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


def _padded(grid: np.ndarray) -> np.ndarray:
    full = np.full(_SHAPE, c.PADDING, np.int8)
    full[: grid.shape[0], : grid.shape[1]] = grid
    return full
