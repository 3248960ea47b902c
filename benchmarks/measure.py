"""Measure more than ``jaxarc benchmark`` does: adapters, surrogates, devices.

python benchmarks/measure.py adapters --json adapters.json
python benchmarks/measure.py surrogate --rows speedup-sets-64 --cores 1
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from adapter_rows import adapter_rows
from scaling_rows import NUM_CORES, scaling_rows
from surrogate_rows import surrogate_rows

from jaxarc.benchmarks.measure import Row, UnknownRowError, choose_rows
from jaxarc.cli.benchmark import run_benchmark

BENCHMARKS: Final[Mapping[str, Callable[[], Sequence[Row]]]] = {
    "adapters": adapter_rows,
    "scaling": scaling_rows,
    "surrogate": surrogate_rows,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=sorted(BENCHMARKS), help="what to measure")
    parser.add_argument("--rows", default="", help="ids of the rows to measure, with commas; all by default")
    parser.add_argument("--quick", action="store_true", help="take few steps: shows that it works, not how fast")
    parser.add_argument("--cores", type=int, help=f"processor cores to use; {NUM_CORES} for scaling, else 1")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    chosen = parser.parse_args(arguments)
    # The targets of scaling are for two cores, all others for one.
    target_cores = NUM_CORES if chosen.name == "scaling" else 1
    ids = [part.strip() for part in chosen.rows.split(",") if part.strip()]
    try:
        rows = choose_rows(BENCHMARKS[chosen.name](), ids)
    except UnknownRowError as error:
        parser.error(str(error))
    run_benchmark(chosen.name, rows, chosen.quick, chosen.cores or target_cores, chosen.json, target_cores)


if __name__ == "__main__":
    main()
