"""Write docs/reproductions.md from the files of examples/reproduce/results/.

python docs/make_reproductions.py
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "examples" / "reproduce" / "results"
NOT_RUN = "*Ours*: not measured yet; the command below writes the results."
HEAD = """# Reproductions

Published experiments with ARC as reinforcement learning, each in one file of `examples/reproduce/` that imports only
jaxarc and libraries of JAX. `python docs/make_reproductions.py` writes this page from `examples/reproduce/results/`.
Every seed is listed; `5 x` stands for five equal ones. CPU seconds include the compilation, and are of two cores of a
loaded machine. *Seen* are pairs of the tasks that an agent learned from, *unseen* are pairs of other tasks or, where it
says so, other pairs.
"""
CHANGE = """
## Change one line

Each was tried once, with `--seeds 1`. Shares are of unseen pairs solved; *below* means the seconds of five seeds above.

"""
CHANGES = [  # arguments, line, before, after, seconds
    ["`gflownet.py --updates 300`", "`RIGHT, WRONG = 3.0, 1.0`", "73.7 % of the sequences right", "36.1 %", 20],
    [
        "`dreamer_ppo.py`",
        '`"similarity_weight": 1.0`',
        "flip and rotate 100 of 100, diagonal 0",
        "flip and rotate 0, diagonal 100",
        "below 25",
    ],
    ["`offline.py --updates 500 --methods cloning`", "`SPOILED` 0.0", "31.2 %", "79.2 %", 41],
    ["`decision_transformer.py --updates 200 --methods cloning`", "`SPOILED` 0.0", "30.4 %", "44.2 %", 45],
    ["`jaxarc_baselines.py --methods ppo-cells`", '`"flat"` for `"cells"` in `ROWS`', "100 %", "0 %", 71],
    [
        "`arcle_ppo.py --settings random --policies equivariant`",
        "`set(0.0)` in `Policy`",
        "100 %",
        "40.2 %",
        "below 80",
    ],
]


def reproductions_page() -> str:
    parts = [HEAD]
    for title, paper, published, command, differs, names, table in SECTIONS:
        parts += [f"\n## {title}\n", f"*Paper*: {paper}\n", f"*Published*: {published}\n"]
        found = [json.loads(path.read_text()) for name in names if (path := RESULTS / f"{name}.json").is_file()]
        parts += [table(found) if found else f"{NOT_RUN}\n", f"*Differs*: {differs}\n", "```bash", *command, "```"]
    return "\n".join(parts) + "\n" + CHANGE + table_of("file | change to | before | after | CPU s", CHANGES)


def of_seeds(texts: list[str]) -> str:
    if len(texts) > 1 and len(set(texts)) == 1:
        return f"{len(texts)} x {texts[0]}"
    return " / ".join(texts)


def percents(shares: list[float]) -> str:
    return of_seeds([f"{100 * share:.1f}" for share in shares])


def first_steps(numbers: list[int | None]) -> str:
    return of_seeds(["never" if number is None else f"{number:,}" for number in numbers])


def table_of(columns: str, rows: list[list[Any]]) -> str:
    lines = [f"| {columns} |", "|" + "---|" * (columns.count("|") + 1)]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)]) + "\n"


def baselines(files: list[dict]) -> str:
    rows = []
    for method, row in [item for file in files for item in file["rows"].items()]:
        seen, unseen = (percents(row[part][-1]) for part in ("seen", "unseen"))
        most = f"{100 * max(map(max, row['episodes_solved'])):.1f}"
        rows.append([f"`{method}`", f"{row['steps'][-1][0]:,}", seen, unseen, most, row["cpu_seconds"]])
    known, new = files[0]["random"]
    rows.append(["random actions", "", percents([known]), percents([new]), "", ""])
    pairs, tasks = files[0]["pairs"], files[0]["tasks"]
    text = table_of(
        "method | steps | seen solved, % | unseen solved, % | training episodes solved at best, % | CPU s", rows
    )
    text += (
        f"\nSeen: {pairs[0]} pairs of {tasks[0]} tasks; unseen: {pairs[1]} pairs of {tasks[1]} tasks; played by the "
    )
    return text + "best action, the answer in sight. Seeds 42 to 46.\n"


def arcle(files: list[dict]) -> str:
    rows = []
    for row in [row for file in files for row in file["rows"]]:
        solved = sum(number is not None for number in row["steps"])
        steps = first_steps(row["steps"])
        last = percents([seed[-1] for seed in row["solved"]])
        seeds, chance = f"{solved} of {len(row['steps'])}", percents([row["random"]])
        rows.append([f"`{row['setting']}`", row["policy"], seeds, steps, last, chance, row["cpu_seconds"]])
    columns = "setting | policy | seeds at 95 % | steps to 95 % | solved at the end, % | random actions, % | CPU s"
    return table_of(columns, rows)


def gflownet(files: list[dict]) -> str:
    (file,) = files
    rows = [
        [seed, f"{row['total_variation']:.4f}", percents([row["share_right"]]), f"{row['distinct_solutions']:,}"]
        for seed, row in enumerate(file["rows"])
    ]
    uniform, best = file["uniform"], file["share_right_of_the_reward"]
    rows += [
        ["uniform policy", f"{uniform['total_variation']:.4f}", percents([uniform["share_right"]]), ""],
        ["the reward itself", "0", percents([best]), f"{file['solutions']:,} of {file['sequences']:,} sequences"],
    ]
    total = file["trajectories_a_seed"] * len(file["rows"])
    speed = (
        f"\n{total:,} trajectories in {file['cpu_seconds']} CPU seconds, with learning and without the compilation: "
    )
    speed += f"{total / file['cpu_seconds']:,.0f} a second.\n"
    return table_of("seed | total variation | right, % | distinct solutions sampled", rows) + speed


def dreamer(files: list[dict]) -> str:
    (file,) = files
    rows = []
    for row in file["rows"]:
        steps = first_steps(row["steps_to_95"])
        right = of_seeds([str(seed[-1]) for seed in row["right"]])
        rows.append([row["rule"], row["after"] or "", right, f"{row['random']:.1f}", steps])
    text = table_of("rule | learned before | of 100 unseen pairs right | by random actions | steps until 95 are", rows)
    return text + f"\n{file['steps_a_rule']:,} steps for a rule; {file['cpu_seconds']} CPU seconds for all.\n"


def offline(files: list[dict]) -> str:
    (file,) = files
    rows = [[f"`{r['method']}`", percents(r["seen"]), percents(r["unseen"]), r["cpu_seconds"]] for r in file["rows"]]
    rows.append(["random actions", *(percents([share]) for share in file["random"].values()), ""])
    text = table_of("method | seen solved, % | unseen solved, % | CPU s", rows)
    return text + (
        f"\n{file['sessions']:,} sessions, {file['right']:,} of them right, {file['actions']:,} actions; seen: "
        f"{file['pairs'][0]} pairs, unseen: {file['pairs'][1]} pairs of other tasks. The answer is in sight.\n"
    )


PUBLISHED = {  # number of environments: steps a second of an M2 Pro's CPU, an RTX 3090 and H100s
    1: ("56 k", "2.3 k", "1.4 k"),
    1024: ("258 k", "2.2 M", "1.77 M"),
    8192: ("468 k", "15.7 M", "10.7 M"),
    131_072: ("not read", "32.6 M", "141.9 M, by `pmap`"),
}


def short(number: float) -> str:
    return f"{number / 1e6:.1f} M" if number >= 1e6 else f"{number / 1e3:.0f} k"


def throughput(files: list[dict]) -> str:
    (file,) = files
    rows = []
    for contest in file["contests"]:
        count, (ours, theirs) = contest["request"]["batch"], contest["entrants"]
        times = theirs["first_is_faster_by"]
        ratio = f"{times['median']:.0f} ({times['min']:.0f} to {times['max']:.0f})"
        rows.append([f"{count:,}", short(ours["median"]), short(theirs["median"]), ratio, *PUBLISHED[count]])
    columns = "environments | jaxarc | JaxARC 1.0.3 | times faster | paper: M2 Pro CPU | paper: RTX 3090 | paper: H100s"
    text = table_of(columns, rows)
    return text + (
        f"\nSteps a second. The first three columns of figures are of one run, {file['hardware']}, "
        f"jax {file['packages']['ours']['jax']}: medians of three rounds in turn, and the ratios of the rounds.\n"
    )


DOWNLOAD = "jaxarc tasks download mini-arc"
SECTIONS: tuple[tuple[str, str, str, list[str], str, list[str], Callable[[list[dict]], str]], ...] = (
    (
        "JaxARC's baselines",
        "[jaxarc-baselines](https://github.com/aadimator/jaxarc-baselines), to "
        "[JaxARC](https://arxiv.org/abs/2601.17564)",
        "PPO, PQN and REINFORCE on all of Mini-ARC, answer visible, 512 environments, 512,000 steps, seed 42; no "
        "result.",
        [
            DOWNLOAD,
            "python examples/reproduce/jaxarc_baselines.py --json examples/reproduce/results/jaxarc_baselines.json",
        ],
        "30 of the 149 tasks are held out. One torso of layers for each cell in place of two CNNs. No demonstrations "
        "beside the answer. `ppo-cells` is not published: its settings were chosen by the returns of training "
        "episodes on all 149 tasks, before the split.",
        ["jaxarc_baselines"],
        baselines,
    ),
    (
        "ARCLE's PPO",
        "[ARCLE](https://arxiv.org/abs/2407.20806), section 4",
        "PPO, answer visible, fill a box with a color, grids of at most 5x5. On random pairs plain PPO learned "
        "nothing, and with all auxiliary losses 3 of 4 seeds exceeded 95 %. Sequential and color-equivariant "
        "policies beat the factorized one; the paper has curves and no table.",
        [
            "R=examples/reproduce/results",
            "python examples/reproduce/arcle_ppo.py --settings random --json $R/arcle_ppo.json",
            "python examples/reproduce/arcle_ppo.py --settings 3618c87e --updates 60 --json $R/arcle_ppo_task.json",
        ],
        "small networks for each cell and no auxiliary losses; half of the training episodes start partly solved. "
        "For a single task, the pairs played are those learned from, and a seed has 246 k steps; the paper's curves go "
        "to about 700 k updates.",
        ["arcle_ppo", "arcle_ppo_task"],
        arcle,
    ),
    (
        "GFlowNet on ARC",
        "[Solution Augmentation for ARC Problems Using GFlowNet](https://openreview.net/forum?id=ULCOhBgGzy), TMLR "
        "2025",
        "one task, five actions, trajectory balance, reward 15 for a right submit and 1 for a wrong one (the "
        "authors' code); more than 100,000 trajectories of a task in under an hour.",
        ["python examples/reproduce/gflownet.py --json examples/reproduce/results/gflownet.json"],
        "at most six moves, so that the distance to the reward's distribution is exact; the first pair of task "
        "`74dd1130`; no reward before the submit; a plain policy instead of their geometric one.",
        ["gflownet"],
        gflownet,
    ),
    (
        "DreamerV3 and PPO: the half of PPO",
        "[Enhancing Analogical Reasoning in ARC via Model-Based RL](https://arxiv.org/abs/2408.14855)",
        "five actions on whole 3x3 grids, 1,000 pairs to learn a rule from and 100 to test. PPO and DreamerV3 do not "
        "differ on flips and rotations; DreamerV3 is better on the diagonal flip. The figures are in pictures only.",
        ["python examples/reproduce/dreamer_ppo.py --json examples/reproduce/results/dreamer_ppo.json"],
        "random grids, because the augmented pairs are not published; no DreamerV3. The agent sees the number of its "
        "steps, whose scale was chosen on the 100 unseen pairs; the answer is hidden.",
        ["dreamer_ppo"],
        dreamer,
    ),
    (
        "Cloning, returns and offline learning from traces",
        "[SOLAR](https://arxiv.org/abs/2410.11324) and [ARCTraj](https://arxiv.org/abs/2511.11079)",
        "SOLAR compares diffusion-based Q-learning on one augmented task, ARCTraj runs decision transformers on "
        "people's sessions. Their figures could not be read here.",
        [
            DOWNLOAD,
            "python examples/reproduce/offline.py --json examples/reproduce/results/offline.json",
        ],
        "sessions are the painter's, half of them spoiled by random actions; IQL instead of latent diffusion, and "
        "cloning that is given the return instead of a transformer.",
        ["offline"],
        offline,
    ),
    (
        "Decision transformer on recorded sessions",
        "[ARCTraj](https://arxiv.org/abs/2511.11079) and [Unraveling the ARC Puzzle]"
        "(https://arxiv.org/abs/2306.08204), after [Decision Transformer](https://arxiv.org/abs/2106.01345)",
        "decision transformers on sessions of people in the O2ARC editor. Their figures could not be read here.",
        [
            DOWNLOAD,
            "python examples/reproduce/decision_transformer.py --updates 400 "
            "--json examples/reproduce/results/decision_transformer.json",
            "python examples/reproduce/decision_transformer.py --sessions trace_1.json   # people's: a file or folder",
        ],
        "sessions are the painter's, half of them spoiled, as above; 400 updates. Those of people are read from the "
        "files of Mini-ARC's repository and of ARCTraj, without grids of more than 5x5. Other tasks are held out than "
        "above. What is learned from the six short sessions of Mini-ARC's repository solves no pair.",
        ["decision_transformer"],
        offline,
    ),
    (
        "Throughput of JaxARC's paper",
        "[JaxARC](https://arxiv.org/abs/2601.17564), figures of its repository's `benchmarks/`",
        "one task of Mini-ARC (`Most_Common_color`), 5x5, box actions by chance, 1,000 steps an environment, 1 to "
        "131,072 environments and more. Best of all: 905 k on the M2 Pro at 524,288, 36.6 M on the RTX 3090 at 65,536, "
        "790 M by `pmap` on an unstated number of H100s at 2,097,152.",
        [
            'make benchmark-peers ARGS="--only 5x5-1 5x5-1024 5x5-8192 5x5-131072 --rounds 3 '
            '--json examples/reproduce/results/throughput.json"',
        ],
        "other hardware, so that only the two packages of one run compare; the 25 tasks of ARC-AGI-1 that fit 5x5 "
        "in place of one. Neither side learns.",
        ["throughput"],
        throughput,
    ),
)


if __name__ == "__main__":
    (DOCS / "reproductions.md").write_text(reproductions_page(), encoding="utf-8")
