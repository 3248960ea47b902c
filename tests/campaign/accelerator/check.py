"""Compile programs for an NVIDIA H200 on a machine without a GPU, and compare what they cost with the last result.

``make accelerator`` builds an environment with JAX's CUDA plugin first (6 GB, once); no driver and no GPU are needed.
XLA's compiler takes what it has to know of the GPU from ``h200.txtpb``. The time of a step is at least
``launches * 3 us + bytes / bandwidth``; loops whose end depends on data are counted with two turns, and each turn makes
the host wait besides. Exit code 1: a program launches or moves a tenth more than before, has more such loops, or misses
a target. One program is compiled for a TPU v5e as well, without a bound.
"""

import argparse
import importlib.util
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from unittest import mock

import jax
from jax.experimental import topologies
from rich.console import Console
from rich.progress import track
from rich.table import Table

from campaign.accelerator.program_costs import Costs, costs_of
from campaign.accelerator.programs import Program, programs

HERE: Final = Path(__file__).parent
RESULT: Final = HERE / "h200.json"
BANDWIDTH: Final = 4.8e12  # bytes per second of an H200
MORE: Final = 1.1  # times as much as before is worse
_OPTIONS: Final = {"xla_gpu_enable_triton_gemm": False}  # to choose tiles of Triton's products XLA asks a device
_COMPARED: Final = ("launches", "bytes_per_env", "open_loops")
TARGETS: Final = {  # the most that each may cost
    "rollout-bbox-30": {"launches": 60, "bytes_per_env": 14_000, "open_loops": 1, "launches_of_a_turn": 4},
    "rollout-bbox-5": {"launches": 60, "bytes_per_env": 1_400, "open_loops": 1, "launches_of_a_turn": 4},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, print a table, compare, and return the exit code."""
    chosen = _parser().parse_args(arguments)
    console = Console(stderr=True)
    wanted = [program for program in programs() if not chosen.only or re.search(chosen.only, program.name)]
    if importlib.util.find_spec("libtpu") is None:
        for program in [program for program in wanted if program.backend == "tpu"]:
            console.print(f"{program.name}: skipped, because libtpu is not installed", highlight=False)
            wanted.remove(program)
    before = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    found: dict[str, dict[str, Any]] = {}
    for program in track(wanted, "compiling for an H200", console=console, disable=not console.is_terminal):
        found[program.name] = look_at(program, chosen.hlo)
        console.print(f"{program.name}: {found[program.name]['compile_seconds']} s to compile", highlight=False)
        if chosen.json:  # a run that is stopped keeps what it has
            chosen.json.write_text(json.dumps(before | found, indent=1) + "\n", encoding="utf-8")
    Console(width=max(console.width, 140)).print(table(found))
    problems = worse(found, before) + missed(found)
    for problem in problems:
        console.print(problem, markup=False)
    return 1 if problems else 0


def look_at(program: Program, hlo: Path | None = None) -> dict[str, Any]:
    """Compile a program for the GPU, or a TPU, and return what a unit of its work costs."""
    for_gpu = program.backend == "gpu"
    if for_gpu:
        spec = (HERE / "h200.txtpb").read_text()
        topology = topologies.get_topology_desc("", "cuda", target_config=spec, topology="1x1x1")
    else:
        os.environ |= {"TPU_ACCELERATOR_TYPE": "v5litepod-1", "TPU_WORKER_HOSTNAMES": "localhost"}  # or libtpu asks
        topology = topologies.get_topology_desc("v5e:1x1x1", "tpu", chips_per_host_bounds=(1, 1, 1))
    mesh = topologies.make_mesh(topology, (1,), ("device",))
    here = jax.NamedSharding(mesh, jax.P())
    place = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=here)
    # Programs ask for the backend while they are traced; it is the CPU here, and the other is what they are for.
    with mock.patch.object(jax, "default_backend", return_value=program.backend):
        function, args, statics = program.build()
        lowered = function.lower(*jax.tree.map(place, args), **statics)
    start = time.perf_counter()
    compiled = lowered.compile(_OPTIONS if for_gpu else None)
    seconds = time.perf_counter() - start
    text = compiled.as_text()
    if hlo is not None:
        hlo.mkdir(parents=True, exist_ok=True)
        (hlo / f"{program.name}.txt").write_text(text)
    return facts_of(program, costs_of(text), compiled.memory_analysis().temp_size_in_bytes, seconds)


def facts_of(program: Program, costs: Costs, temp_bytes: int, seconds: float) -> dict[str, Any]:
    """Return the row of a program."""
    unit = costs.longest_loop() if program.in_loop else costs
    launching, moving = unit.bound_seconds(BANDWIDTH)
    is_open = unit.open_loops()
    is_gpu = program.backend == "gpu"  # kernels of a TPU are one program, which the host launches once
    return {
        "what": program.what,
        "num_envs": program.num_envs,
        "launches": unit.total_launches(),
        "bytes_per_env": round(unit.total_bytes() / program.num_envs),
        "loops": [{"kind": loop.kind, "turns": loop.turns, "launches": loop.turn.launches} for loop in unit.loops],
        "open_loops": len(is_open),
        "launches_of_a_turn": max((loop.turn.total_launches() for loop in is_open), default=0),
        "temp_bytes_per_env": round(temp_bytes / program.num_envs),
        "bound_microseconds": round(1e6 * (launching + moving), 1) if is_gpu else None,
        "bound_steps_per_second": round(program.steps / (launching + moving)) if is_gpu else None,
        "limited_by": ("launches" if launching > moving else "memory") if is_gpu else None,
        "compile_seconds": round(seconds, 1),
    }


def worse(found: dict[str, dict[str, Any]], before: dict[str, dict[str, Any]]) -> list[str]:
    """List what costs more than in an earlier result, each as one sentence."""
    return [
        f"{name}: {field} rose from {before[name][field]} to {row[field]}"
        for name, row in found.items()
        for field in _COMPARED
        if name in before and row[field] > MORE * before[name][field]
    ]


def missed(found: dict[str, dict[str, Any]]) -> list[str]:
    """List the targets that are missed, each as one sentence."""
    return [
        f"{name}: {field} is {found[name][field]}, and may be {most} at most"
        for name, targets in TARGETS.items()
        for field, most in targets.items()
        if name in found and found[name][field] > most
    ]


def table(found: dict[str, dict[str, Any]]) -> Table:
    """Show the rows."""
    shown = Table(title="Programs for an NVIDIA H200, bounds of a step or call")
    for name in ("program", "launches", "open loops", "bytes/env", "temporary bytes/env", "bound", "limited by"):
        shown.add_column(name, justify="left" if name in ("program", "limited by") else "right")
    for name, row in found.items():
        loops = f"{row['open_loops']} of {row['launches_of_a_turn']}" if row["open_loops"] else "0"
        numbers = (f"{row[field]:,}" for field in ("launches", "bytes_per_env", "temp_bytes_per_env"))
        launches, moved, temporary = numbers
        bound = "-" if row["bound_microseconds"] is None else f"{row['bound_microseconds']:,} us"
        shown.add_row(name, launches, loops, moved, temporary, bound, row["limited_by"] or "-")
    return shown


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="REGEX", help="programs whose names it finds")
    parser.add_argument("--json", type=Path, help=f"write the result here; {RESULT.name} beside this file is compared")
    parser.add_argument("--hlo", type=Path, metavar="FOLDER", help="write the compiled programs here")
    return parser


if __name__ == "__main__":
    sys.exit(main())
