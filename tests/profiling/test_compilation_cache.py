"""The persistent cache: on for small programs, in a private folder, and found again by the next process."""

import json
import os
import subprocess
import sys

import pytest

from jaxarc.profiling import CacheFolderError, enable_compilation_cache

PROGRAM = """
import json, sys
import jax, jax.numpy as jnp
from jaxarc.profiling import enable_compilation_cache

events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event))
jax.block_until_ready(jax.jit(lambda x: x - 1)(jnp.ones(3)))  # JAX is in use before the cache is
if len(sys.argv) > 2:
    enable_compilation_cache(sys.argv[2])
    jax.jit(lambda x: x + 1)(jnp.ones(4))
folder = enable_compilation_cache(sys.argv[1] if len(sys.argv) > 1 else None)
events.clear()
jax.block_until_ready(jax.jit(lambda x: x * 2)(jnp.arange(5)))
count = lambda name: events.count(f"/jax/compilation_cache/{name}")
print(json.dumps([str(folder), count("cache_hits"), count("cache_misses")]))
"""


def run(*folders, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment |= {"JAX_PLATFORMS": "cpu", **variables}
    command = [sys.executable, "-c", PROGRAM, *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def entries(folder):
    return {path.name for path in folder.glob("*-cache")}


def test_the_next_process_finds_even_small_programs(tmp_path):
    folder = tmp_path / "cache"
    used, hits, misses = run(folder)
    assert (used, hits) == (str(folder), 0)
    assert misses >= 2  # arange and the product
    first = entries(folder)
    assert len(first) == misses
    assert run(folder, JAX_ENABLE_COMPILATION_CACHE="0") == [str(folder), misses, 0]
    assert entries(folder) == first
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_second_call_moves_to_another_folder_and_the_default_lies_in_the_users_cache(tmp_path):
    mine, other = tmp_path / "xdg" / "jaxarc" / "compiled", tmp_path / "other"
    misses = run(mine, other)[2]
    assert misses >= 2
    assert entries(mine)
    assert entries(other)
    assert not entries(mine) & entries(other)
    assert run(XDG_CACHE_HOME=str(tmp_path / "xdg"))[:2] == [str(mine), misses]
    assert run(XDG_CACHE_HOME="relative", HOME=str(tmp_path))[0] == str(tmp_path / ".cache" / "jaxarc" / "compiled")


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_may_write_into_is_refused(tmp_path, mode):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(CacheFolderError, match=rf"{folder}.*{mode:04o}.*700"):
        enable_compilation_cache(folder)


def test_a_folder_whose_name_jax_cannot_take_is_refused(tmp_path):
    with pytest.raises(CacheFolderError, match="PYTHONUTF8"):  # as Python reads one in a locale without its letters
        enable_compilation_cache(tmp_path / os.fsdecode("é".encode("latin-1")))


def test_a_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(CacheFolderError, match=rf"{tmp_path}.*\d+.*\d+"):
        enable_compilation_cache(tmp_path)


def test_half_a_program_of_a_killed_process_is_removed_and_others_are_written(tmp_path):
    folder = tmp_path / "cache"
    _, _, misses = run(folder)
    whole = sorted(entries(folder))
    (folder / whole[0]).write_bytes(b"half")
    (folder / f"{whole[0].removesuffix('-cache')}-atime").unlink()
    assert run(folder)[1:] == [misses - 1, 1]
    assert sorted(entries(folder)) == whole
