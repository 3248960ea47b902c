"""PPO of tianshou 2 on jaxarc; it steps single environments, and takes no vector environment of Gymnasium.

pip install tianshou
python examples/clients/tianshou_ppo.py
"""

import argparse
import time
import warnings
from typing import Any

import gymnasium
import numpy as np
from rich.console import Console
from tianshou.algorithm.modelfree.ppo import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

from jaxarc.adapters import register_gymnasium

NUM_ENVS, NUM_STEPS = 16, 1024
OURS, CARTPOLE = "clients/starter-v0", "CartPole-v1"


class Recorder(Collector):
    """Keeps the return of every episode that it collects."""

    returns: list[float]

    def collect(self, *arguments: Any, **named: Any) -> Any:
        stats = super().collect(*arguments, **named)
        self.returns.extend(stats.returns)
        return stats


def main() -> None:
    parser = argparse.ArgumentParser(description="Train on the starter environment, and on CartPole to compare.")
    parser.add_argument("--steps", type=int, default=30_720)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(highlight=False)
    register_gymnasium(OURS, dataset="starter", layout="flat")
    for name in (OURS, CARTPOLE):
        envs = DummyVectorEnv([lambda name=name: gymnasium.make(name)] * NUM_ENVS)
        env = gymnasium.make(name)
        net = lambda env=env: Net(state_shape=env.observation_space.shape, hidden_sizes=[64])
        actor = DiscreteActor(preprocess_net=net(), action_shape=env.action_space.n, softmax_output=False)
        policy = DiscreteActorPolicy(
            actor=actor, action_space=env.action_space, observation_space=env.observation_space
        )
        algorithm = PPO(
            policy=policy,
            critic=DiscreteCritic(preprocess_net=net()),
            optim=AdamOptimizerFactory(lr=2.5e-3),
            ent_coef=0.005,
        )
        collector = Recorder(algorithm, envs, VectorReplayBuffer(NUM_STEPS, NUM_ENVS))
        collector.returns = []
        collector.reset()
        settings = OnPolicyTrainerParams(
            training_collector=collector,
            max_epochs=given.steps // NUM_STEPS,
            epoch_num_steps=NUM_STEPS,
            collection_step_num_env_steps=NUM_STEPS,
            batch_size=256,
            update_step_num_repetitions=4,
            show_progress=False,
            verbose=False,
        )
        start = time.process_time()
        algorithm.run_training(settings)
        seconds = time.process_time() - start
        console.print(f"{name}: {given.steps / seconds:,.0f} steps per CPU second, compilation included")
        returns = collector.returns
        tenth = max(len(returns) // 10, 1)
        means = np.mean(returns[:tenth]), np.mean(returns[-tenth:])
        console.print(f"  mean return {means[0]:.2f} in the first tenth, {means[1]:.2f} in the last")


if __name__ == "__main__":
    main()
