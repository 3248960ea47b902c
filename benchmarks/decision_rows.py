"""Measure decisions per second of surrogates and of the lookahead expert."""

import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32

from jaxarc.benchmarks.measure import Row, SharedSamples
from jaxarc.benchmarks.suite import Budget, Measure
from jaxarc.config import SurrogateNetworkConfig
from jaxarc.envs import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.experts.candidates import Candidates, candidates_of_canvas
from jaxarc.experts.canvas_state import canvas_of_observation
from jaxarc.experts.lookahead import score_candidates
from jaxarc.registration import make
from jaxarc.surrogate import EditScorer
from jaxarc.surrogate.scorers import CountingScorer, choose_box, first_best
from jaxarc.types import Observation

_TIMES_AS_FAST: Final = 20.0


def decision_rows(make_speed: "Callable[[int], DecisionSpeed] | None" = None) -> list[Row]:
    """List the rows of grids of up to 10x10 and of up to 30x30.

    Args:
        make_speed: makes what is measured on a side, when its first row is; :class:`DecisionSpeed` by default.
    """
    speed = functools.cache(make_speed or DecisionSpeed)
    return [*_rows("decisions", 10, speed, _TIMES_AS_FAST), *_rows("decisions-30", 30, speed, None)]


def _rows(name: str, side: int, speed: "Callable[[int], DecisionSpeed]", target: float | None) -> list[Row]:

    def sample(budget: Budget) -> Mapping[str, float]:
        rates = speed(side).per_second(budget.seconds)
        return rates | {
            "ratio": rates["surrogate"] / rates["expert"],
            "steps-ratio": rates["surrogate"] / rates["steps"],
            "drawing-ratio": rates["drawing-surrogate"] / rates["drawing-expert"],
        }

    def sample_network(budget: Budget) -> Mapping[str, float]:
        # Apart: a turn of the network is so long that the others would have few of them, with cold caches.
        rates = speed(side).per_second(budget.seconds, ("expert", "network"))
        return {"network": rates["network"], "network-ratio": rates["expert"] / rates["network"]}

    samples, of_network = SharedSamples(sample), SharedSamples(sample_network)

    def measure(part: str) -> Measure:
        return functools.partial((of_network if part.startswith("network") else samples).sample, name=part)

    rows = (
        ("expert", f"lookahead expert, {NUM_CANDIDATES} drawn candidates, {side}x{side}", "decisions/s", None),
        ("surrogate", "quick surrogate on the same ones", "decisions/s", None),
        ("ratio", "how many times as fast as the expert", "times", target),
        ("steps", "an expert that takes a step for each candidate", "decisions/s", None),
        ("steps-ratio", "surrogate over that expert", "times", target),
        ("drawing-expert", "drawing candidates, then the expert", "decisions/s", None),
        ("drawing-surrogate", "drawing them, then the surrogate", "decisions/s", None),
        ("drawing-ratio", "ratio of the two: drawing bounds it", "times", None),
        ("network", "network that predicts the edits, on the same ones", "decisions/s", None),
        ("network-ratio", "how many times as long as the expert it takes", "times", None),
    )
    return [Row(f"{name}-{part}", what, unit, measure(part), bound) for part, what, unit, bound in rows]


NUM_CANDIDATES: Final = 256
PLAYERS: Final = ("expert", "surrogate", "drawing-expert", "drawing-surrogate", "steps")
_NUM_STATES: Final = 1024
_CALLS: Final = 5  # of a turn: sustained, so that a turn does not begin with what others left in the caches
_FEW_STATES: Final = 16  # of them: each takes as many steps as there are candidates, or predicts these


class Situations(NamedTuple):
    """States of which every player sees the same, and the same candidates."""

    keys: Array  # [B]
    states: ArcEnvState  # [B]
    observations: Observation  # [B, ...]
    candidates: Candidates  # [B, k]


class DecisionSpeed:
    """The same candidates of the same states on real pairs, judged by the expert, by surrogates, and by playing.

    Weights do not change how long a model takes, so the surrogates are fresh ones.

    Args:
        side: of the canvas, which the grids fit.
        num_states: decided on at once.
    """

    def __init__(self, side: int, num_states: int = _NUM_STATES):
        self._params = _params(side)
        keys = jax.random.split(jax.random.key(0), num_states)
        states, observations = jax.jit(jax.vmap(ArcEnvironment().reset, (0, None)))(keys, self._params)
        candidates = jax.jit(jax.vmap(self._draw))(keys, observations)
        self._all = Situations(keys, states, observations, candidates)
        self._few = jax.tree.map(lambda leaf: leaf[:_FEW_STATES], self._all)
        counting = CountingScorer(jax.random.key(1))
        network = eqx.filter_jit(EditScorer)(jax.random.key(1), SurrogateNetworkConfig())
        judge = functools.partial(self._judge, counting)
        self._players = {
            "expert": (jax.jit(jax.vmap(self._look)), self._all),
            "surrogate": (jax.jit(jax.vmap(judge)), self._all),
            "drawing-expert": (jax.jit(jax.vmap(self._draw_and(self._look))), self._all),
            "drawing-surrogate": (jax.jit(jax.vmap(self._draw_and(judge))), self._all),
            "steps": (jax.jit(jax.vmap(self._play)), self._few),
            "network": (jax.jit(jax.vmap(functools.partial(self._judge, network))), self._few),
        }
        for player in self._players:
            jax.block_until_ready(self.choices(player))  # compiles

    def per_second(self, min_seconds: float, players: Sequence[str] = PLAYERS) -> dict[str, float]:
        """Decisions per second of each player, which take turns; by the median of its turns.

        ``expert`` and ``surrogate`` decide on candidates that are there, ``drawing-expert`` and ``drawing-surrogate``
        draw them first; ``steps`` is an expert that takes k steps of the environment and keeps the best,
        and ``network`` a surrogate that predicts them.

        Args:
            min_seconds: least time of all rounds together.
            players: who take turns.
        """
        seconds: dict[str, list[float]] = {player: [] for player in players}
        start = time.perf_counter()
        while not seconds[players[-1]] or time.perf_counter() - start < min_seconds:
            for player in players:
                begun = time.perf_counter()
                for _ in range(_CALLS):
                    jax.block_until_ready(self.choices(player))
                seconds[player].append((time.perf_counter() - begun) / _CALLS)
        return {player: self._count(player) / statistics.median(times) for player, times in seconds.items()}

    def choices(self, player: str) -> Int32[Array, " B"]:
        """Return the places of the candidates that a player takes."""
        decide, situations = self._players[player]
        return decide(situations)

    def _count(self, player: str) -> int:
        return self._players[player][1].keys.shape[0]

    def _draw(self, key: Array, observation: Observation) -> Candidates:
        config = self._params.config
        return candidates_of_canvas(key, canvas_of_observation(observation, config), NUM_CANDIDATES, config)

    def _look(self, situation: Situations) -> Int32[Array, ""]:
        config, (actions, is_distinct) = self._params.config, situation.candidates
        scores = score_candidates(canvas_of_observation(situation.observations, config), actions, config)
        return first_best(jnp.where(scores.is_valid & is_distinct, scores.score, -jnp.inf))

    @staticmethod
    def _judge(model: CountingScorer | EditScorer, situation: Situations) -> Int32[Array, ""]:
        actions, is_distinct = situation.candidates
        assert isinstance(actions, BboxAction)
        return choose_box(model, situation.observations, actions, is_distinct)

    def _draw_and(self, decide: Callable[[Situations], Array]) -> Callable[[Situations], Array]:
        def draw_and_decide(situation: Situations) -> Array:
            candidates = self._draw(situation.keys, situation.observations)
            return decide(situation._replace(candidates=candidates))

        return draw_and_decide

    def _play(self, situation: Situations) -> Int32[Array, ""]:
        step = lambda action: ArcEnvironment().step(situation.states, action, self._params)[0]
        actions, is_distinct = situation.candidates
        after = jax.vmap(step)(actions)
        worth = jnp.where(after.done, jnp.where(after.is_solved, 2.0, -1.0), after.similarity_score)
        return first_best(jnp.where(is_distinct, worth, -jnp.inf))


def _params(side: int) -> EnvParams:
    _, params = make(
        "arc-agi-1/training",
        too_large="skip",
        selection_format="bbox",
        max_grid_height=side,
        max_grid_width=side,
        start_grid="partial",
        reveal_target=True,
        include_input=True,
        invalid_action_policy="noop",
        history_enabled=False,
    )
    return params
