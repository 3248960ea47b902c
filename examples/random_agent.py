"""One random agent in one environment, step by step, drawn in the terminal.

python examples/random_agent.py --dataset arc-agi-1/training --steps 12 --seed 0
"""

import argparse

import jax
from rich.console import Console

import jaxarc
from jaxarc.envs.operations import get_operation_name
from jaxarc.render import render_grid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="arc-agi-1/training:max_side=10")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    console = Console()

    env, params = jaxarc.make(
        options.dataset, selection_format="bbox", max_grid_height=10, max_grid_width=10, invalid_action_policy="noop"
    )
    space = env.action_space(params)
    step = jax.jit(env.step)  # compiled once; params is an argument, so other tasks need no other compilation
    key_reset, *keys = jax.random.split(jax.random.key(options.seed), options.steps + 1)
    state, observation = jax.jit(env.reset)(key_reset, params)
    console.print("the answer:", render_grid(state.target_grid), sep="\n")
    for key in keys:
        action = space.sample(key)
        state, observation, reward, done, info = step(state, action, params)
        box = f"({action.r1}, {action.c1}) to ({action.r2}, {action.c2})"
        console.print(f"{get_operation_name(int(action.operation))} on {box}: reward {float(reward):+.3f}")
        if done:
            break
    console.print("the grid:", render_grid(observation), sep="\n")
    console.print(f"similarity {float(info['similarity']):.3f} after {int(info['step_count'])} steps")


if __name__ == "__main__":
    main()
