"""PPO of TorchRL on jaxarc: an id for one environment, and a batch of them in one compiled call.

pip install torchrl
python examples/clients/torchrl_ppo.py
"""

import argparse
import time

import gymnasium
import numpy as np
import torch
from gymnasium.vector import SyncVectorEnv
from rich.console import Console
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import EnvBase, GymEnv, GymWrapper, RewardSum, TransformedEnv, check_env_specs
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from jaxarc.adapters import register_gymnasium

NUM_ENVS, NUM_STEPS = 64, 16
OURS, CARTPOLE = "clients/starter-v0", "CartPole-v1"


def make_batch(name: str) -> EnvBase:
    if name == OURS:
        envs = gymnasium.make_vec(name, NUM_ENVS, vectorization_mode="vector_entry_point", autoreset_mode="Disabled")
    else:
        envs = SyncVectorEnv([lambda: gymnasium.make(name)] * NUM_ENVS, autoreset_mode="Disabled")
    return TransformedEnv(GymWrapper(envs, categorical_action_encoding=True), RewardSum())


def train(env: EnvBase, num_steps: int) -> tuple[list[float], float]:
    """Train with PPO; returns the mean return of the episodes that ended in each batch, and the CPU seconds."""
    num_inputs, num_actions = env.observation_spec["observation"].shape[-1], env.action_spec.space.n
    layers = lambda outputs: nn.Sequential(nn.Linear(num_inputs, 64), nn.Tanh(), nn.Linear(64, outputs))
    logits = TensorDictModule(layers(num_actions), in_keys=["observation"], out_keys=["logits"])
    actor = ProbabilisticActor(
        logits, in_keys=["logits"], spec=env.action_spec, distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
    )  # fmt: skip
    critic = ValueOperator(layers(1), in_keys=["observation"])
    advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.005)
    optimizer = torch.optim.Adam(loss.parameters(), 2.5e-3)
    collector = Collector(env, actor, frames_per_batch=NUM_ENVS * NUM_STEPS, total_frames=num_steps)
    returns = []
    start = time.process_time()
    for batch in collector:
        ended = batch["next", "done"]
        if ended.any():
            returns.append(float(batch["next", "episode_reward"][ended].mean()))
        for _ in range(4):
            with torch.no_grad():
                advantage(batch)
            for rows in batch.reshape(-1)[torch.randperm(batch.numel())].split(256):
                losses = loss(rows)
                total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
                optimizer.zero_grad()
                total.backward()
                optimizer.step()
    return returns, time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description="Train on the starter environment, and on CartPole to compare.")
    parser.add_argument("--steps", type=int, default=61_440)
    given = parser.parse_args()
    torch.manual_seed(0)
    console = Console(highlight=False)
    register_gymnasium(OURS, dataset="starter", layout="flat")
    check_env_specs(GymEnv(OURS))  # one environment, by its id alone
    for name in (OURS, CARTPOLE):
        returns, seconds = train(make_batch(name), given.steps)
        console.print(f"{name}: {given.steps / seconds:,.0f} steps per CPU second, compilation included")
        tenth = max(len(returns) // 10, 1)
        means = np.mean(returns[:tenth]), np.mean(returns[-tenth:])
        console.print(f"  mean return {means[0]:.2f} in the first tenth, {means[1]:.2f} in the last")


if __name__ == "__main__":
    main()
