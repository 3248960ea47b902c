"""evosax's ``GymnaxProblem`` on jaxarc, with its own normalization of observations.

pip install evosax
python examples/clients/evosax_es.py
"""

import argparse
import time

import jax
import optax
from evosax.algorithms import Open_ES
from evosax.problems import GymnaxProblem
from evosax.problems.networks import MLP, categorical_output_fn
from rich.console import Console

from jaxarc.adapters import register_gymnax


def main() -> None:
    parser = argparse.ArgumentParser(description="Evolve a policy for the starter environment, and for CartPole.")
    parser.add_argument("--generations", type=int, default=300)
    parser.add_argument("--population", type=int, default=128)
    given = parser.parse_args()
    register_gymnax()
    console = Console(highlight=False)
    for name, choice in (("jaxarc-starter-v1", {"layout": "flat"}), ("CartPole-v1", {})):
        key = jax.random.key(0)
        num_actions = 45 if choice else 2
        policy = MLP(layer_sizes=(32, num_actions), output_fn=categorical_output_fn)
        problem = GymnaxProblem(name, policy, episode_length=20, num_rollouts=4, env_kwargs=choice)
        state = problem.init(key)
        strategy = Open_ES(
            population_size=given.population,
            solution=problem.sample(key),
            optimizer=optax.adam(1e-2),
            std_schedule=optax.constant_schedule(0.1),
        )
        evolution = strategy.init(key, problem.sample(key), strategy.default_params)

        @jax.jit
        def generation(key, evolution, state, problem=problem, strategy=strategy):
            key_ask, key_play, key_tell = jax.random.split(key, 3)
            population, evolution = strategy.ask(key_ask, evolution, strategy.default_params)
            returns, state, _ = problem.eval(key_play, population, state)
            evolution, _ = strategy.tell(key_tell, population, -returns, evolution, strategy.default_params)
            return evolution, state, returns.mean()

        generation = generation.lower(key, evolution, state).compile()
        start = time.process_time()
        means = []
        for number in range(given.generations):
            evolution, state, mean = generation(jax.random.fold_in(key, number), evolution, state)
            means.append(float(mean))
        steps = given.generations * given.population * 4 * 20
        console.print(f"{name}: {steps / (time.process_time() - start):,.0f} steps per CPU second")
        console.print(f"  mean return {means[0]:.2f} -> {means[-1]:.2f} in {given.generations} generations")


if __name__ == "__main__":
    main()
