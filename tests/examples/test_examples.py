"""Every example runs as a user runs it: as a program of its own, here with tiny sizes."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
TINY = {  # what each is called with
    "quickstart.py": "",
    "random_agent.py": "--steps 3",
    "own_task.py": "",
    "own_operation_set.py": "--envs 16 --steps 30",
    "own_expert.py": "",
    "own_solver.py": "",
    "ppo_gymnax.py": "--updates 3 --network cnn",
    "recurrent_ppo_trials.py": "--updates 2",
    "sb3_gymnasium.py": "--steps 2048",
    "behavior_cloning.py": "--updates 2",
    "surrogate.py": "--steps 3",
    "plan_with_mctx.py": "--side 5 --simulations 4 --candidates 4",
    "expert_iteration.py": "--side 3 --updates 2 --simulations 4 --candidates 4",
    "sharded_rollout.py": "--devices 2 --envs 7 --steps 10 --canvas 5",
    "advanced/jax_optimization_demo.py": "--canvas 5 --runs 1 --steps 20",
    "advanced/batch_processing_demo.py": "--canvas 5 --sizes 1 2 --steps 3 --runs 1",
    "advanced/memory_efficiency_demo.py": "--canvas 30 --lengths 100 1000 --steps 100 --batch-sizes 1 2",
    "advanced/jax_best_practices_demo.py": "--canvas 5 --runs 1",
}
SHOWS = {  # a few lines that only a right run prints
    "quickstart.py": ["102,400 steps"],
    "random_agent.py": ["the answer:", "reward", "after 3 steps"],
    "own_task.py": ["submitted in test mode: done True, solved True", "with the same answer: True"],
    "own_operation_set.py": ["2,835", "fill red and submit"],
    "own_expert.py": ["96 of 96 solved", "the output has another size"],
    "own_solver.py": ["18 of 234 test outputs", "3af2c5a8: 1 of 1", "errors at 0 tasks"],
    "ppo_gymnax.py": ["step    6,144: ", "% solved"],
    "recurrent_ppo_trials.py": ["share solved", "seed 0, new rules"],
    "sb3_gymnasium.py": ["step   2,048: ", "% solved, mean return", "answer", "RecordedEpisode("],
    "behavior_cloning.py": ["136 traces of 25 tasks", "before: 0 of 136", "of 27 that it never saw"],
    "surrogate.py": ["384 examples in", "its first choice is one", "fill 1"],
    "plan_with_mctx.py": ["one edit ahead", "agent and a search", "4 pairs"],
    "expert_iteration.py": ["1,024 steps, 5,120 with those of the searches", "unseen pairs solved"],
    "sharded_rollout.py": ["identical", "yes"],
    "advanced/jax_optimization_demo.py": ["traced 1 time(s)", "jit of vmap", "Average step time: ", "Throughput: "],
    "advanced/batch_processing_demo.py": ["equal bit for bit: True", "early termination"],
    "advanced/memory_efficiency_demo.py": ["3,616,000", "4. Tips"],
    "advanced/jax_best_practices_demo.py": [
        "Invalid operation ID 42",
        "did you mean 'max_episode_steps'?",
        "5. To take",
    ],
}
NEEDS = {
    "ppo_gymnax.py": ("gymnax", "gymnax is not installed; pip install gymnax six"),
    "sb3_gymnasium.py": ("stable_baselines3", "stable-baselines3 is not installed; pip install stable-baselines3"),
    "plan_with_mctx.py": ("mctx", "mctx is not installed; pip install mctx"),
    "expert_iteration.py": ("mctx", "mctx is not installed; pip install mctx"),
}


@functools.cache
def run(name: str) -> str:
    """Return what the example prints."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *TINY[name].split()],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_tested():
    programs = {
        str(path.relative_to(EXAMPLES))
        for path in EXAMPLES.rglob("*.py")
        if path.parent.name not in ("clients", "reproduce")
    }
    assert programs - {"advanced/measure.py"} == set(TINY)


@pytest.mark.parametrize("name", TINY)
def test_example_runs(name):
    if name in NEEDS:
        library, reason = NEEDS[name]
        pytest.importorskip(library, reason=reason)
    output = run(name)
    assert [line for line in SHOWS[name] if line not in output] == []


def test_saved_states_are_a_tenth_of_the_full_dump_and_load_equal():
    output = run("advanced/memory_efficiency_demo.py")
    rows = [line.split("│")[1:-1] for line in output.splitlines() if line.count("│") == 8]
    written = [[cell.strip() for cell in row] for row in rows if row[-1].strip() in {"True", "False"}]
    assert [row[0] for row in written] == ["point", "bbox", "mask"]
    for row in written:
        assert row[-1] == "True"
        assert float(row[3].removesuffix(" %")) >= 90


def solved_at_the_end(name: str, arguments: str) -> int:
    """Return the percentage that an example prints last, of what was solved; it is 0 where nothing is learned."""
    command = [sys.executable, str(EXAMPLES / name), *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=True)
    return int(float(re.findall(r"([\d.]+) %(?: solved|$)", done.stdout, re.MULTILINE)[-1]))


def test_the_ppo_of_stable_baselines3_learns_the_starter_environment():
    pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed; pip install stable-baselines3")
    assert solved_at_the_end("sb3_gymnasium.py", "--steps 205000") >= 10  # a random policy solves less than 1 %


def test_a_plain_ppo_learns_with_a_hidden_answer():
    pytest.importorskip("gymnax", reason="gymnax is not installed; pip install gymnax six")
    assert solved_at_the_end("ppo_gymnax.py", "--hidden --updates 300") >= 5  # a random policy solves none


def test_a_recurrent_agent_learns_a_new_rule_within_an_episode():
    arguments = "--see answer --updates 60"
    assert solved_at_the_end("recurrent_ppo_trials.py", arguments) >= 60  # guessing the rule solves 1 %
