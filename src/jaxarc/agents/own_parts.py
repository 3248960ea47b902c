"""Rewards and networks of agents by name: those of this package, and classes of one's own.

A config, such as that of a run, has the name of a class that is known here, and runs no code. A file or a module is run
only where a user names it on the command line.
"""

import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from jaxarc.agents.cell_network import CellNetwork
from jaxarc.agents.edits import EditKind, Network, PolicyInput
from jaxarc.agents.relational_network import RelationalNetwork
from jaxarc.config import NetworkConfig
from jaxarc.config.choices import choices_of
from jaxarc.constants import NUM_COLORS
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.errors import Caught, UsageError
from jaxarc.files import user_path
from jaxarc.lazy import is_file_of_code, line_of, load_code
from jaxarc.types import PRNGKey
from jaxarc.wrappers import RewardWrapper

Part = TypeVar("Part")
_BATCH: Final = 2  # of the observations by which a network is checked


class OwnPartError(UsageError, ValueError):
    """A reward or a network of one's own is wrong, or there is none of this name."""


class Parts(Generic[Part]):
    """Classes of one kind, by name."""

    def __init__(
        self,
        word: str,
        field: str,
        base: type[Part],
        ours: Mapping[str, type[Part]] = MappingProxyType({}),
        taken: Callable[[], Sequence[str]] = tuple,
    ):
        self._word = word  # what a class is; the commands that read runs have an option of this name
        self._field = field  # of an experiment, which holds a name
        self._base = base
        self._ours = ours  # of this package
        self._taken = taken  # names that mean something else
        self._registered: dict[str, type[Part]] = {}

    def find(self, name: str) -> type[Part]:
        """Return the class of a name; no code is run.

        Raises:
            OwnPartError: there is none.
        """
        found = self._registered.get(name) or self._ours.get(name)
        if found is None:
            names = [*self._ours, *self._registered]
            near = difflib.get_close_matches(name, names, 1, 0.75)
            known = f"did you mean {near[0]!r}" if near else f"known: {', '.join(names) or 'none'}"
            raise OwnPartError(
                f"{self._field}: there is no {self._word} {name!r:.80}; {known}; name one of your own on the command "
                f"line, {self._field}=file.py:NAME or --{self._word} file.py:NAME of a run, or call "
                f"jaxarc.agents.register_{self._word}"
            )
        return found

    def is_registered(self, name: str) -> bool:
        return name in self._registered

    def register(self, part: type[Part]) -> str:
        """Make a class known by its name, and return that; see :func:`register_reward`."""
        if not isinstance(part, type) or not issubclass(part, self._base):
            raise OwnPartError(f"a {self._word} is a class that derives from {self._base.__name__}, got {part!r:.80}")
        if missing := sorted(vars(part).get("__abstractmethods__", ())):
            raise OwnPartError(f"the {self._word} {part.__name__} lacks {', '.join(missing)}; write each as a method")
        name = part.__name__
        if name in (*self._ours, *self._taken()):
            raise OwnPartError(f"the name {name!r} is that of a {self._word} of this package; rename the class")
        before = self._registered.get(name, part)
        if (before.__module__, before.__qualname__) != (part.__module__, part.__qualname__):
            raise OwnPartError(f"the name {name!r} is taken by another {self._word}, {before!r}; rename one of the two")
        if before is not part:  # it was written anew: programs are compiled by its name
            jax.clear_caches()
        self._registered[name] = part
        return name

    def load(self, name: str) -> str:
        """Run what ``file.py:NAME`` or ``module:NAME`` names, register its class, and return the name of that.

        Modules that a file imports are looked for in its folder, other modules in the working directory too.

        Raises:
            OwnPartError: there is no such file, module or class, or it fails.
        """
        where, _, attribute = name.rpartition(":")
        found: dict[str, Any] = {}
        with Caught() as caught:
            found = vars(load_code(where))
        if caught.error is not None:
            line = _line_of(caught.error, user_path(where).resolve())
            raise OwnPartError(
                f"the {self._word} {name!r} cannot be loaded{line}: {type(caught.error).__name__}: {caught.error}; "
                "give file.py:NAME, or module:NAME of a module that Python finds from here"
            ) from caught.error
        if attribute not in found:
            known = [key for key, one in found.items() if isinstance(one, type) and issubclass(one, self._base)]
            own = [key for key in known if found[key].__module__ == found["__name__"]]
            hint = ", ".join(own) or f"none; a {self._word} is a class that derives from {self._base.__name__}"
            raise OwnPartError(f"{where} has no {self._word} {attribute!r}; it has {hint}")
        return self.register(found[attribute])


def names_code(name: str) -> bool:
    """Whether a name is ``file.py:NAME`` or ``module:NAME``, and not that of a known class."""
    return ":" in name or is_file_of_code(name)


REWARDS: Final[Parts[RewardWrapper[Any]]] = Parts(
    "reward", "agent.reward", RewardWrapper, taken=lambda: choices_of("reward")
)
"""What rewards an agent around the rules, by ``agent.reward``."""
NETWORKS: Final[Parts[Network]] = Parts(
    "network",
    "network.kind",
    Network,
    {"relational": RelationalNetwork, "cells": CellNetwork, "residual_cnn": CellNetwork},
)
"""What a policy's network is, by ``network.kind``."""


def register_reward(reward: type[RewardWrapper[Any]]) -> None:
    """Make a reward of one's own known by the name of its class, to every run of this process.

    Args:
        reward: a class whose fields beside ``env`` have defaults. A class that is written anew, as in a notebook,
            replaces the one before.

    Raises:
        OwnPartError: it is no reward, cannot be made of an environment, or its name is taken.
    """
    REWARDS.register(reward)


def register_network(network: type[Network]) -> None:
    """Make a network of one's own known by the name of its class, to every run of this process.

    Args:
        network: is called with a key, the rows and columns of the canvas, the kinds of edits and a
            :class:`~jaxarc.config.NetworkConfig`. A class that is written anew, as in a notebook, replaces the one
            before.

    Raises:
        OwnPartError: it is no network, or its name is taken.
    """
    NETWORKS.register(network)


def rewarded(name: str, params: EnvParams | None = None) -> Any:
    """Return the environment that rewards by a name; an empty one stands for the rules.

    Args:
        name: of a reward that was registered.
        params: with which its method is tried; None tries nothing.

    Raises:
        OwnPartError: there is no such reward, it cannot be made of an environment alone, or its method fails.
    """
    if not name:
        return ArcEnvironment()
    reward = REWARDS.find(name)
    shape: tuple[int, ...] = ()
    with Caught() as caught:
        env = reward(ArcEnvironment())
        shape = () if params is None else _reward_shape(env, params)
        if not shape:
            return env
    rule = "its method returns a number, and fields beside env have defaults"
    wrong = f"returns an array of shape {shape}" if caught.error is None else f"fails{_in_words(caught.error, reward)}"
    raise OwnPartError(f"the reward {name} {wrong}; {rule}") from caught.error


def _reward_shape(env: RewardWrapper[Any], params: EnvParams) -> tuple[int, ...]:
    def ask(key: PRNGKey, params: EnvParams) -> Any:
        state, _ = env.env.reset(key, params)
        after, _, reward, _, info = env.env.step(state, env.action_space(params).sample(key), params)
        return jnp.asarray(env.reward(reward, info, state, after, params), jnp.float32)

    return jax.eval_shape(ask, jax.random.key(0), params).shape


def make_network(
    key: Key[Array, ""], grid_shape: tuple[int, int], kinds: tuple[EditKind, ...], config: NetworkConfig
) -> Network:
    """Make a fresh network of the config's kind.

    Raises:
        OwnPartError: there is no such kind, or one of one's own fails, or returns other shapes than :class:`Network`
            says.
    """
    kind: Any = NETWORKS.find(config.kind)
    if not NETWORKS.is_registered(config.kind):
        return kind(key, grid_shape, kinds, config)
    problem = ""
    with Caught() as caught:
        network = kind(key, grid_shape, kinds, config)
        problem = _problem_of(network, grid_shape, len(kinds))
        if not problem:
            return network
    if caught.error is not None:
        problem = f"fails{_in_words(caught.error, kind)}; see jaxarc.agents.Network"
    raise OwnPartError(f"the network {config.kind} {problem}") from caught.error


def _in_words(error: Exception, part: type) -> str:
    """Say in what line of its file a class failed, and how."""
    file = Path(str(vars(sys.modules[part.__module__]).get("__file__")))
    return f"{_line_of(error, file)}: {type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _line_of(error: Exception, file: Path) -> str:
    line = line_of(error, file)
    return "" if line is None else f" ({file.name}, line {line})"


def _problem_of(network: Any, grid_shape: tuple[int, int], num_kinds: int) -> str:
    """Say in a sentence why a network cannot be trained; nothing where it can be. Shapes are traced, not computed."""
    for path, leaf in jax.tree.leaves_with_path(network):
        if not isinstance(leaf, jax.Array | np.ndarray) or not jnp.issubdtype(leaf.dtype, jnp.floating):
            return (
                f"has {leaf!r:.60} as {jax.tree_util.keystr(path)}, and weights are arrays of floats; declare other "
                "fields by eqx.field(static=True)"
            )
    height, width = grid_shape
    grids = jax.ShapeDtypeStruct((_BATCH, height, width), jnp.int8)
    index = jax.ShapeDtypeStruct((_BATCH,), jnp.int32)
    time = jax.ShapeDtypeStruct((_BATCH,), jnp.float32)

    def ask(inputs: PolicyInput, index: Any) -> dict[str, Any]:
        features = network.encode(inputs)
        return {
            "kind_logits": network.kind_logits(features),
            "first_logits": network.first_logits(features, index),
            "second_logits": network.second_logits(features, index),
            "color_logits": network.color_logits(features, index, index),
            "size_logits": tuple(network.size_logits(features)),
            "value": network.value(features),
        }

    wanted = {
        "kind_logits": (_BATCH, num_kinds),
        "first_logits": (_BATCH, height * width),
        "second_logits": (_BATCH, height * width),
        "color_logits": (_BATCH, NUM_COLORS),
        "size_logits": ((_BATCH, height), (_BATCH, width)),
        "value": (_BATCH,),
    }
    inputs: Any = PolicyInput  # whose leaves are shapes here
    found = jax.eval_shape(ask, inputs(grids, grids, time), index)
    for name, shape in wanted.items():
        got = jax.tree.map(lambda leaf: leaf.shape, found[name])
        if got != shape:
            return f"returns shape {got} from {name} for {_BATCH} observations, and must return {shape}"
    return ""
