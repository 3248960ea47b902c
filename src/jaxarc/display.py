"""Episodes of any policy, recorded step by step, and how notebooks and terminals show them, tasks and states.

>>> episode = jaxarc.record_episode(policy, env, params, jax.random.key(0))
>>> jaxarc.show(episode)
>>> episode.save("episode.html")
"""

import base64
import sys
from collections.abc import Callable, Sequence
from html import escape
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Int

from jaxarc.compilation import require_own_jax
from jaxarc.datasets.task_set import TaskSet
from jaxarc.envs.action_masks import FlatActionCodec
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BaseAction, action_numbers
from jaxarc.files import write_whole
from jaxarc.interface import Environment
from jaxarc.prng import as_typed_key
from jaxarc.render.drawings import (
    animate,
    episode_frames,
    episodes_file,
    episodes_gif,
    frame_of_state,
    frame_svg,
    frames_svg,
    sheet_svg,
    tasks_html,
)
from jaxarc.render.replay_page import ReplayEpisode, ReplayTask
from jaxarc.render.terminal import print_frames, print_task
from jaxarc.tasks.buffer import TaskBuffer
from jaxarc.tasks.raw_task import RawTask, crop_padding
from jaxarc.tasks.registry import NO_TASK, task_id_of
from jaxarc.tasks.task import pad_task
from jaxarc.types import JaxArcTask, Observation, PRNGKey
from jaxarc.wrappers.wrapper import resets_itself

_MOST_TASKS: Final = 24  # of a contact sheet
_MOST_STATES: Final = 16
_MOST_PRINTED: Final = 4  # in a terminal
_PAGE_HEIGHT: Final = 760  # pixels of a replay page inside a notebook
_KINDS: Final = (".html", ".gif", ".svg", ".png")


class RecordedEpisode(NamedTuple):
    """An episode, every step of it, and its task; a notebook shows it as a page to step through.

    ``page.add(*episode)`` puts it into a :class:`jaxarc.render.replay_page.ReplayPage` with others.
    """

    task: ReplayTask
    steps: ReplayEpisode

    def __repr__(self) -> str:
        ending = "solved" if self.steps.is_solved else "not solved"
        return (
            f"RecordedEpisode({self.task.task_id!r}, {self.steps.pair}, {len(self.steps.actions)} steps, "
            f"reward {float(self.steps.rewards.sum()):.2f}, {ending})"
        )

    def _repr_html_(self) -> str:
        return _page_of([self])

    def save(self, path: str | Path) -> Path:
        """Write a page (``.html``), an animation (``.gif``) or a picture of all steps (``.svg``, ``.png``).

        Returns:
            The path.

        Raises:
            ValueError: the file name has another ending.
        """
        return write_whole(path, _file_of([self], Path(path)))


def record_episode(
    policy: Callable[[PRNGKey, Observation], Any],
    env: Environment[Any, Any],
    params: EnvParams,
    key: PRNGKey,
    *,
    task_index: int | None = None,
    pair_index: int | None = None,
    player: str = "policy",
) -> RecordedEpisode:
    """Play one episode to its end and keep every step.

    Args:
        policy: from key and observation to an action, of one environment; whether it is compiled is up to it.
        env: from :func:`jaxarc.make`, with or without wrappers, but not with :class:`~jaxarc.wrappers.AutoReset`.
        params: tasks and rules.
        key: of the reset and of the policy; the same key gives the same episode.
        task_index: of the task to play; drawn by weight when left out.
        pair_index: of the pair to play; chosen as the params say when left out.
        player: a name for the policy, which the page shows.

    Raises:
        ValueError: the environment resets itself, or an episode consists of several trials.
        IndexError: there is no such task or pair.
    """
    require_own_jax()
    _require_one_episode(env, params)
    key_reset, key_policy = jax.random.split(as_typed_key(key))
    state, observation = env.reset(key_reset, params, task_index, pair_index)
    start = _core_state(state)
    states = [_seen(start)]
    actions = []
    rewards = []
    invalid = []
    done = False
    while not done:
        action = policy(jax.random.fold_in(key_policy, len(actions)), observation)
        state, observation, reward, done, info = env.step(state, action, params)
        actions.append(_numbers_of(action, params))
        rewards.append(float(reward))
        invalid.append(bool(info["invalid_action"]))
        states.append(_seen(_core_state(state)))
    grids, clipboards, similarities = zip(*states, strict=True)
    steps = ReplayEpisode(
        pair=f"{params.config.episode.mode} {int(start.pair_index)}",
        player=player,
        selection_format=params.config.action.selection_format,
        actions=actions,
        grids=np.stack(grids),
        clipboards=np.stack(clipboards),
        target=np.asarray(start.target_grid),
        rewards=np.array(rewards, np.float32),
        similarities=np.array(similarities, np.float32),
        invalid=np.array(invalid, np.bool_),
        is_solved=bool(_core_state(state).is_solved),
    )
    return RecordedEpisode(_task_of(start, params), steps)


def show(thing: Any, *, animated: bool = False) -> None:
    """Show a task, a task set, a state, a batch or a list of states, an episode or a list of episodes.

    In a notebook as a picture, and an episode as a page to step through; in a terminal as colored text.

    Args:
        thing: what to show.
        animated: show an episode as an animation (GIF), which needs no script; a list of states always is one.

    Raises:
        TypeError: nothing can be shown of it.
    """
    ipython = _notebook()
    if ipython is None:
        _print(thing)
        return
    html = _animation(thing) if animated or _is_list_of(thing, ArcEnvState) else _html_of(thing)
    ipython.display.display(ipython.display.HTML(html))


def picture_of(thing: object) -> str | None:
    """Return the SVG that a notebook shows of a task, a state or a batch of states; None for anything else."""
    if isinstance(thing, RawTask):
        return sheet_svg(thing, thing.title or thing.task_id)
    if not isinstance(thing, JaxArcTask | ArcEnvState) or any(isinstance(x, Tracer) for x in jax.tree.leaves(thing)):
        return None
    if isinstance(thing, JaxArcTask):
        is_batch = thing.num_train_pairs.ndim
        return None if is_batch else sheet_svg(thing, _name_of(thing))
    if not thing.similarity_score.ndim:
        return frame_svg(frame_of_state(thing))
    states, count = _first_states(thing, _MOST_STATES)
    title = f"{count} states" if count == len(states) else f"the first {len(states)} of {count} states"
    return frames_svg([frame_of_state(state) for state in states], title)


def sheet_of(thing: object) -> str | None:
    """Return the HTML that a notebook shows of a task set; None for anything else."""
    if not isinstance(thing, TaskSet):
        return None
    count = len(thing)
    title = repr(thing) if count <= _MOST_TASKS else f"{thing!r}, the first {_MOST_TASKS}"
    return tasks_html(title, [(task.task_id, *task.train[0]) for task in islice(thing, _MOST_TASKS)])


def _require_one_episode(env: Environment[Any, Any], params: EnvParams) -> None:
    if params.config.episode.mode == "trials":
        raise ValueError("an episode of mode='trials' is several; record one of mode='train' or mode='test'")
    if resets_itself(env):
        raise ValueError("AutoReset replaces the last state of an episode; hand in the environment without it")


def _core_state(state: Any) -> ArcEnvState:
    while not isinstance(state, ArcEnvState):  # wrappers carry the state of the environment inside theirs
        state = state.env_state
    return state


def _seen(state: ArcEnvState) -> tuple[np.ndarray, np.ndarray, float]:
    grid, clipboard, similarity = jax.device_get((state.working_grid, state.clipboard, state.similarity_score))
    return grid, clipboard, float(similarity)


def _numbers_of(action: BaseAction | Int[Array, ""] | int, params: EnvParams) -> tuple[int, ...]:
    structured = (
        action
        if isinstance(action, BaseAction)
        else FlatActionCodec.of(params.config).to_structured(jnp.asarray(action))
    )
    return action_numbers(jax.tree.map(lambda leaf: leaf[None], structured))[0]


def _task_of(state: ArcEnvState, params: EnvParams) -> ReplayTask:
    """Name the task of a state, with its demonstrations unless they are changed in every episode."""
    tasks = params.tasks
    index = int(state.task_index)
    number = int(tasks.registry_index[index])
    name = "task" if number == NO_TASK else task_id_of(number)
    if not isinstance(tasks, TaskBuffer) or state.augmentation is not None:
        return ReplayTask(name, ())
    first = int(tasks.first_pair[index])
    rows = range(first, first + int(tasks.num_train[index]))
    grid_of = lambda flat: crop_padding(np.asarray(flat).reshape(tasks.grid_shape))
    return ReplayTask(name, [(grid_of(tasks.inputs[row]), grid_of(tasks.outputs[row])) for row in rows])


def _name_of(task: JaxArcTask) -> str:
    index = int(task.task_index)
    return "" if index == NO_TASK else task_id_of(index)


def _first_states(states: ArcEnvState, most: int) -> tuple[list[ArcEnvState], int]:
    """Return the first states of a batch, and how many there are."""
    # A batch [D, B] becomes one of D * B states. The similarity is a number of each state, so its axes are the batch's.
    lead = states.similarity_score.ndim
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[lead:])[:most], states)
    shown = len(flat.similarity_score)
    return [jax.tree.map(lambda leaf, i=i: leaf[i], flat) for i in range(shown)], states.similarity_score.size


def _is_list_of(thing: object, kind: type) -> bool:
    # An episode is a tuple too, but not one of episodes.
    return isinstance(thing, list | tuple) and bool(thing) and all(isinstance(part, kind) for part in thing)


def _html_of(thing: Any) -> str:
    if isinstance(thing, RecordedEpisode):
        return _page_of([thing])
    if _is_list_of(thing, RecordedEpisode):
        return _page_of(thing)
    html = sheet_of(thing) or picture_of(thing)
    if html is None:
        raise _cannot_show(thing)
    return html


def _page_of(episodes: Sequence[RecordedEpisode]) -> str:
    # The page allows only its own script and style, so it runs in a frame of its own.
    page = escape(_file_of(episodes, Path("page.html")).decode(), quote=True)
    style = f"width:100%;height:{_PAGE_HEIGHT}px;border:1px solid #8884"
    return f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="{style}" title="replay"></iframe>'


def _animation(thing: Any) -> str:
    if _is_list_of(thing, ArcEnvState):
        content = animate([frame_of_state(state) for state in thing])
    elif isinstance(thing, RecordedEpisode) or _is_list_of(thing, RecordedEpisode):
        content = episodes_gif([thing] if isinstance(thing, RecordedEpisode) else thing)
    else:
        raise _cannot_show(thing)
    data = base64.b64encode(content).decode()
    return f'<img src="data:image/gif;base64,{data}" alt="an episode">'


def _file_of(episodes: Sequence[RecordedEpisode], path: Path) -> bytes:
    kind = path.suffix.lower()
    if kind not in _KINDS:
        raise ValueError(f"an episode is written as {', '.join(_KINDS)}, got {path.name!r}; change the ending")
    title = episodes[0].task.task_id if len(episodes) == 1 else f"{len(episodes)} episodes"
    return episodes_file(kind, episodes, title)


def _notebook() -> ModuleType | None:
    """Return IPython where this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return ipython if shell is not None and "IPKernelApp" in shell.config else None


def _print(thing: Any) -> None:
    if isinstance(thing, RecordedEpisode) or _is_list_of(thing, RecordedEpisode):
        for episode in [thing] if isinstance(thing, RecordedEpisode) else thing:
            frames = episode_frames(episode.task, episode.steps)
            print_frames(repr(episode), [frames[0], frames[-1]])
    elif _is_list_of(thing, ArcEnvState):
        print_frames(f"{len(thing)} states", [frame_of_state(state) for state in thing[:_MOST_PRINTED]])
    elif isinstance(thing, ArcEnvState):
        states, count = _first_states(thing, _MOST_PRINTED) if thing.similarity_score.ndim else ([thing], 1)
        print_frames(f"{count} states" if count > 1 else "", [frame_of_state(state) for state in states])
    elif isinstance(thing, JaxArcTask):
        print_task(thing, _name_of(thing))
    elif isinstance(thing, RawTask):
        print_task(pad_task(thing), thing.title or thing.task_id)
    elif isinstance(thing, TaskSet):
        for task in islice(thing, _MOST_PRINTED):
            print_task(pad_task(task), task.title or task.task_id)
    else:
        raise _cannot_show(thing)


def _cannot_show(thing: object) -> TypeError:
    return TypeError(
        f"jaxarc.show takes tasks, task sets, states and recorded episodes, got {type(thing).__name__}; see "
        "jaxarc.record_episode"
    )
