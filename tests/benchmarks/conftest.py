import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(SCRIPTS))  # scripts import one another by name
