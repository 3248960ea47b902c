"""What is compared: the same tasks, batch, episode rule and distribution of random actions on all sides."""

from collections.abc import Mapping
from typing import Any

from turns import Contest, Entrant

OURS = Entrant("jaxarc (this)", "ours", "vmap")
JAXARC = Entrant("JaxARC 1.0.3, vmap", "jaxarc", "vmap")
JAXARC_MAP = Entrant("JaxARC 1.0.3, lax.map", "jaxarc", "map")
JAXARC_EPISODES = Entrant("JaxARC 1.0.3, lax.map over episodes", "jaxarc", "episodes")
ARCLE = Entrant("ARCLE 0.2.6, one environment", "arcle", "loop")
RATIO_CONTEST = "bbox-1024"


def all_contests(quick: bool) -> tuple[Contest, ...]:
    """List the contests; the quick ones are few and measure too little to mean much."""
    ask = _quick_request if quick else _request
    both, every = (OURS, JAXARC), (OURS, JAXARC, JAXARC_MAP, JAXARC_EPISODES)
    bbox = {
        1: (*both, JAXARC_EPISODES),
        16: both,
        256: every,
        1024: every,
        4096: both,
        16384: (OURS,),
        65536: (OURS,),
    }
    chosen = {16: both} if quick else bbox
    steps = [
        Contest(
            f"bbox-{batch}",
            f"steps of {batch:,} environments, 30x30, box actions",
            ask(batch=batch),
            entrants,
        )
        for batch, entrants in chosen.items()
    ]
    if quick:
        return (*steps, _loop(ask))
    others = (
        Contest("point-1024", "the same, 1,024, point actions", ask(batch=1024, selection="point"), both),
        Contest("mask-1024", "the same, 1,024, mask actions", ask(batch=1024, selection="mask"), both),
        Contest("5x5-2048", "the same, 2,048, box actions, 5x5", ask(batch=2048, side=5), (*both, JAXARC_EPISODES)),
        *[
            Contest(f"5x5-{batch}", f"the same, {batch:,}, box actions, 5x5", ask(batch=batch, side=5), both)
            for batch in (1, 1024, 8192, 131_072)  # of the sizes that JaxARC's paper reports
        ],
        Contest("resets-1024", "resets of 1,024 environments, 30x30", ask(kind="resets", batch=1024), both),
        _loop(ask),
    )
    return (*steps, *others)


def _loop(ask: Any) -> Contest:
    entrants = (
        Entrant("jaxarc (this), env.step", "ours", "shipped"),
        Entrant("jaxarc (this), jax.jit(env.step)", "ours", "jit"),
        Entrant("JaxARC 1.0.3, env.step", "jaxarc", "shipped"),
        Entrant("JaxARC 1.0.3, jax.jit(env.step)", "jaxarc", "jit"),
        ARCLE,
    )
    return Contest("python-loop", "steps of one environment in a Python loop, 30x30", ask(kind="loop"), entrants)


def _request(**changes: Any) -> Mapping[str, Any]:
    defaults = {"kind": "steps", "selection": "bbox", "side": 30, "batch": 1, "seconds": 1.0, "longest_scan": 512}
    return {**defaults, **changes}


def _quick_request(**changes: Any) -> Mapping[str, Any]:
    return {**_request(**changes), "seconds": 0.0, "longest_scan": 4}
