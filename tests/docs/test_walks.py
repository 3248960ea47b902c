"""walks.txt names the files that each walk passes, and no walk passes more functions than it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from jaxarc.primitives import choose_executor

ROOT = Path(__file__).parents[2]
WALKS = (ROOT / "tests" / "docs" / "walks.txt").read_text(encoding="utf-8")


@pytest.mark.skipif(choose_executor("native") == "xla", reason="the walks are those of the C++ library")
@pytest.mark.parametrize("name", ["step", "reset", "search", "train", "replay"])
def test_a_walk_passes_the_files_of_the_list(name):
    done = subprocess.run([sys.executable, ROOT / "tests/docs/walks.py", name], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    walk = re.compile(rf"^{name}: \d+ files, (\d+) functions\n((?:  .*\n)+)", re.MULTILINE)
    (most, files), (functions, passed) = (walk.search(text).groups() for text in (WALKS, done.stdout))
    assert passed == files, f"python tests/docs/walks.py {name} prints what belongs into walks.txt"
    assert int(functions) <= int(most)
