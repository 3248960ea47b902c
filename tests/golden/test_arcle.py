"""Random sequences as ARCLE 0.2.6 played them, on three canvases: every step that it took as we do, and every submit.

``arcle.npz`` holds, for each canvas and each of N sequences of S operations that both packages have: the pair, the
operations and selections, the grid and clipboard after each step, and whether ARCLE showed something else there, after
which it went on from ours. ``docs/reliability.md`` has the classes of these differences.
"""

from pathlib import Path

import jax
import numpy as np
import pytest
from small_tasks import tasks_of

import jaxarc
from jaxarc.envs import MaskAction

RECORDED = np.load(Path(__file__).with_name("arcle.npz"))


def unpadded(grid):
    return grid[: (grid[:, 0] >= 0).sum(), : (grid[0] >= 0).sum()]


@pytest.mark.parametrize("side", [6, 10, 30])
def test_steps_and_submits_are_those_of_arcle(side):
    kept = {name.split("/")[1]: RECORDED[name] for name in RECORDED.files if name.startswith(f"{side}x")}
    operations, differs = kept["operations"].astype(np.int32), kept["differs"]
    assert len(np.unique(operations)) >= 30
    assert kept["solved"].sum() >= len(operations) // 2
    assert 0 < differs.sum() < differs.size // 20
    pairs = [
        (unpadded(source), unpadded(target)) for source, target in zip(kept["inputs"], kept["targets"], strict=True)
    ]
    fields = {"max_grid_height": side, "max_grid_width": side, "max_episode_steps": operations.shape[1] + 1}
    env, params = jaxarc.make(tasks_of(*pairs), selection_format="mask", history_enabled=False, **fields)
    cells = np.unpackbits(kept["selections"], axis=-1, count=side * side).astype(bool)
    actions = MaskAction(operations.T, np.swapaxes(cells.reshape(*operations.shape, side, side), 0, 1))

    @jax.jit
    def play(states, actions):
        def step(states, action):
            states, _, _, _, info = jax.vmap(env.step, (0, 0, None))(states, action, params)
            return states, (states.working_grid, states.clipboard, info["success"], info["terminated"])

        return jax.lax.scan(step, states, actions)[1]

    keys = jax.random.split(jax.random.key(0), len(pairs))
    states, _ = jax.vmap(env.reset, (0, None, 0))(keys, params, np.arange(len(pairs), dtype=np.int32))
    grids, clips, success, terminated = (np.swapaxes(shown, 0, 1) for shown in jax.device_get(play(states, actions)))
    np.testing.assert_array_equal(grids, kept["grids"])
    np.testing.assert_array_equal(clips, kept["clips"])
    np.testing.assert_array_equal(success[:, -1], kept["solved"])
    assert terminated[:, -1].all()
