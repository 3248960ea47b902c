"""The Python blocks of ``docs/profiling.md`` run as they stand; in a process of their own, as one sets a cache up."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "profiling.md"


def test_every_python_block_runs(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 8
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-W", "error", "-c", "\n".join(blocks)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    counted = done.stdout[done.stdout.index("Counter({'double': 1})") :]
    assert "at x, now f32[4] and before f32[3]" in counted
    assert re.search(r"20 calls .*dot_general", done.stdout)
    assert (tmp_path / "runs" / "memory.prof").is_file()
    assert list((tmp_path / "cache" / "jaxarc" / "compiled").iterdir())
