"""The library is built once, found by its digest, and whatever keeps it from running leaves the executor of XLA."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from jaxarc.native import library
from jaxarc.native.library import (
    FLAGS,
    SEARCH_SOURCES,
    NativeLibraryError,
    NativeLibraryWarning,
    find_compiler,
    is_sound,
    library_stem,
    load_library,
    native_library,
)
from jaxarc.primitives import native_call

SHOW = """
import warnings
from jaxarc.primitives import choose_executor
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    chosen = [choose_executor("auto") for _ in range(2)]
print(*chosen, len(caught), *(str(warning.message) for warning in caught))
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own, with the library of the other tests in it."""
    known = native_library()
    if known is None:
        pytest.skip("no C++ compiler is installed")
    monkeypatch.setenv("JAXARC_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "native"
    folder.mkdir(parents=True, mode=0o700)
    shutil.copy(known.path, folder)
    return folder / known.path.name


def chosen_elsewhere(**variables):
    """Return what a fresh process prints: what auto is, twice, how often it warned, and the warning."""
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    done = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_library_that_is_there_is_loaded_as_it_is(cache):
    before = cache.stat().st_mtime_ns
    assert load_library()[0] == cache
    assert cache.stat().st_mtime_ns == before


@pytest.fixture
def shipped(cache, monkeypatch, tmp_path):
    """The library of a wheel: that of the cache, in a folder as a wheel has it, for the second level of two."""
    folder = tmp_path / "lib"
    folder.mkdir()
    monkeypatch.setattr(library, "_SHIPPED", folder)
    monkeypatch.setattr(library, "_levels", lambda: ["fast", "slow"])
    return shutil.copy(cache, folder / f"{library_stem(Path(library.__file__).parent, 'slow')}.so")


def test_the_library_of_a_wheel_is_loaded_by_level_and_nothing_is_built(shipped, cache, monkeypatch):
    cache.unlink()
    monkeypatch.setenv("CXX", "/nowhere/c++")
    assert load_library()[0] == shipped
    fast = shutil.copy(shipped, shipped.with_name(shipped.name.replace("slow", "fast")))
    assert load_library()[0] == fast
    native_library.cache_clear()
    known = native_library()
    native_library.cache_clear()
    assert known is not None
    assert known.path == fast
    assert all(target.startswith(fast.stem) for target in known.targets.values())
    monkeypatch.setattr(library, "_levels", list)
    with pytest.raises(NativeLibraryError, match="/nowhere/c"):
        load_library()


def test_the_library_of_a_wheel_serves_no_other_sources(shipped, cache, monkeypatch, tmp_path):
    copied = shutil.copytree(Path(library.__file__).parent, tmp_path / "native")
    with (copied / "grid.h").open("a") as file:
        file.write("// changed\n")
    assert name_of_library(monkeypatch, tmp_path, copied) != shipped.name  # it would be built


def refuse(path, functions):
    """Refuse as XLA does a library of an interface that it no longer supports; one that is built here is not."""
    if path.parent.name == "lib":
        raise NativeLibraryError(f"{path} is refused")


@pytest.mark.parametrize("fault", ["content", "functions", "check"])
def test_a_library_of_a_wheel_that_cannot_be_used_is_replaced_with_one_warning(shipped, cache, monkeypatch, fault):
    """As one of another architecture, in a folder from which nothing may be loaded, or of an older interface of XLA."""
    check = refuse if fault == "check" else lambda path, loaded: None
    if fault == "content":
        shipped.write_bytes(b"not a library")
    if fault == "functions":
        subprocess.run([*find_compiler(), "-shared", "-x", "c++", os.devnull, "-o", shipped], check=True)
    with pytest.warns(NativeLibraryWarning, match=shipped.name) as caught:
        assert load_library(check=check)[0] == cache
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    cache.unlink()
    monkeypatch.setenv("CXX", "/nowhere/c++")
    with pytest.raises(NativeLibraryError, match=shipped.name) as error:
        load_library(check=check)
    assert "/nowhere/c++" in str(error.value)


def test_xla_answers_at_once_where_it_does_not_know_the_interface_of_a_library(cache, monkeypatch):
    def register(target, *given, **named):
        raise jax.errors.JaxRuntimeError("INVALID_ARGUMENT: the handler's API version (0.9) is incompatible")

    monkeypatch.setattr(jax.ffi, "register_ffi_target", register)
    native_library.cache_clear()
    with pytest.warns(NativeLibraryWarning, match="API version"):
        assert native_library() is None
    native_library.cache_clear()


def test_sources_that_were_replaced_while_the_process_runs_are_refused(cache, monkeypatch):
    monkeypatch.setattr(library, "_AT_IMPORT", {Path(library.__file__).parent: "of another version"})
    with pytest.raises(NativeLibraryError, match="start it again"):
        load_library()


FLAGS_OF_PROCESSORS = {
    "fpu sse4_2": [],
    "avx avx2 bmi1 bmi2 f16c fma abm movbe": ["x86_64_v3"],
    "avx avx2 bmi1 bmi2 f16c fma abm movbe avx512f": ["x86_64_v3"],
    "avx avx2 bmi1 bmi2 f16c fma abm movbe avx512f avx512bw avx512cd avx512dq avx512vl": ["x86_64_v4", "x86_64_v3"],
}


@pytest.mark.parametrize(("flags", "levels"), FLAGS_OF_PROCESSORS.items())
def test_a_level_needs_all_instructions_that_its_code_may_have(monkeypatch, flags, levels):
    monkeypatch.setattr(library.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(library.sys, "platform", "linux")
    monkeypatch.setattr(library, "_cpuinfo", lambda: {"flags": flags})
    assert library._levels() == levels


@pytest.mark.parametrize(
    "damage", [lambda x: x[:5000], lambda x: x[:-1], lambda x: b"", lambda x: x[:99] + b"?" + x[100:]]
)
def test_a_damaged_library_is_built_again(cache, monkeypatch, damage):
    whole = cache.read_bytes()
    cache.unlink()
    cache.write_bytes(damage(whole))
    assert not is_sound(cache)
    monkeypatch.setattr(library, "build", lambda _, path, sources: path.write_bytes(whole))
    assert load_library()[0] == cache
    assert cache.read_bytes() == whole


def name_of_library(monkeypatch, tmp_path, sources=None):
    """Return the name of the file that a build would write."""
    monkeypatch.setenv("JAXARC_CACHE", str(tmp_path / "none"))
    names = []

    def note(compiler, path, sources):
        names.append(path.name)
        raise NativeLibraryError("not built")

    monkeypatch.setattr(library, "build", note)
    with pytest.raises(NativeLibraryError, match="not built"):
        load_library(sources)
    return names[0]


def test_sources_compiler_and_processor_are_in_the_name(monkeypatch, tmp_path):
    names = [name_of_library(monkeypatch, tmp_path)]
    assert names == [name_of_library(monkeypatch, tmp_path)]
    with monkeypatch.context() as patch:
        patch.setenv("CXX", f"{shlex.join(find_compiler())} -g1")
        names.append(name_of_library(patch, tmp_path))
    monkeypatch.setattr(library, "_processor", lambda: "another one")
    names.append(name_of_library(monkeypatch, tmp_path))
    monkeypatch.setattr(library, "FLAGS", (*FLAGS, "-g"))
    names.append(name_of_library(monkeypatch, tmp_path))
    copied = shutil.copytree(Path(library.__file__).parent, tmp_path / "native")
    (copied / "grid.h").write_text("// changed\n")
    monkeypatch.setattr(library, "_SOURCES", copied)
    assert len({*names, name_of_library(monkeypatch, tmp_path)}) == 5


@pytest.mark.parametrize("compiler", ["/nowhere/c++", "none", "sh -c 'exit 1'", "'c++"])
def test_a_library_that_is_there_is_loaded_when_the_compiler_is_gone_or_fails(cache, monkeypatch, compiler):
    monkeypatch.setenv("CXX", compiler)
    assert load_library()[0] == cache
    damaged = cache.read_bytes()[:-1]
    cache.unlink()
    cache.write_bytes(damaged)
    with pytest.raises((NativeLibraryError, OSError)):
        load_library()


@pytest.mark.parametrize("words", ["{folder}/ccache c++ -m64", "{folder}/c++", "'{folder}/my compilers/c++' -m64"])
def test_a_compiler_may_be_several_words_or_go_by_its_name(cache, monkeypatch, tmp_path, words):
    """A launcher such as ccache is followed by a compiler, or looks at the name that it is called by."""
    (tmp_path / "my compilers").mkdir()
    known = cache.read_bytes()
    launcher = tmp_path / "launcher"
    launcher.write_text(
        f'#!/bin/sh\necho "${{0##*/}} $1" > {tmp_path}/called\nfor last; do :; done\ncp {tmp_path}/built "$last"\n'
    )
    launcher.chmod(0o755)
    for name in ("ccache", "c++", "my compilers/c++"):
        (tmp_path / name).symlink_to(launcher)
    (tmp_path / "built").write_bytes(known)
    monkeypatch.setenv("CXX", words.format(folder=tmp_path))
    assert load_library()[0] != cache
    called = {"ccache": "ccache c++", "c++": "c++ -std=c++17", "my compilers": "c++ -m64"}
    name = next(name for name in ("my compilers", "ccache", "c++") if f"/{name}" in words)
    assert (tmp_path / "called").read_text() == f"{called[name]}\n"


@pytest.mark.parametrize("sources", [None, SEARCH_SOURCES])
def test_a_build_is_told_in_one_line_on_stderr_and_a_library_that_is_there_in_none(
    cache, monkeypatch, tmp_path, capsys, sources
):
    compiler = tmp_path / "c++"
    compiler.write_text(f'#!/bin/sh\nfor last; do :; done\ncp {tmp_path}/built "$last"\n')
    compiler.chmod(0o755)
    (tmp_path / "built").write_bytes(cache.read_bytes())
    monkeypatch.setenv("CXX", str(compiler))
    load_library(sources, ())
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert str(compiler) in told.err
    assert str(cache.parent) in told.err
    load_library(sources, ())
    assert capsys.readouterr().err == ""


def test_source_that_does_not_compile_is_an_error_in_one_line_and_leaves_no_file(monkeypatch, tmp_path):
    (tmp_path / "library.cc").write_text("this is no C++;\n")
    monkeypatch.setattr(library, "_SOURCES", tmp_path)
    monkeypatch.setenv("JAXARC_CACHE", str(tmp_path / "cache"))
    with pytest.raises(NativeLibraryError, match="error") as caught:
        load_library()
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "cache").rglob("*.so*")) == []
    native_library.cache_clear()
    with pytest.warns(NativeLibraryWarning, match="xla"):
        assert native_library() is None
    native_library.cache_clear()


def test_sources_compile_without_a_warning():
    """Users build without this check: a compiler to come may warn of what none does today."""
    source = Path(library.__file__).with_name("library.cc")
    strict = ["-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-fsyntax-only", "-isystem", jax.ffi.include_dir()]
    command = [*find_compiler(), *(flag for flag in FLAGS if flag != "-w"), *strict, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_a_compiler_the_executor_of_xla_runs_and_one_line_says_so(tmp_path):
    printed = chosen_elsewhere(CXX=tmp_path / "no-compiler", JAXARC_CACHE=tmp_path)
    assert printed.startswith("xla xla 1 ")
    assert "no-compiler" in printed
    assert "\n" not in printed


def test_a_compiler_that_hangs_is_given_up(monkeypatch, tmp_path):
    script = tmp_path / "c++"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("JAXARC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "BUILD_SECONDS", 0.2)
    with pytest.raises(subprocess.TimeoutExpired):
        load_library()


@pytest.mark.skipif(os.name != "posix", reason="folders have modes")
def test_a_cache_that_cannot_be_made_or_that_others_may_write_is_not_used(tmp_path):
    (tmp_path / "file").write_text("no folder")
    printed = chosen_elsewhere(JAXARC_CACHE=tmp_path / "file" / "cache")
    assert printed.startswith("xla xla 1 ")
    shared = tmp_path / "shared" / "native"
    shared.mkdir(parents=True)
    shared.chmod(0o777)
    printed = chosen_elsewhere(JAXARC_CACHE=shared.parent)
    assert printed.startswith("xla xla 1 ")
    assert "0777" in printed


def test_a_library_that_does_not_load_is_not_used(cache, monkeypatch):
    content = b"not a library"
    cache.unlink()
    cache.write_bytes(content + library.hashlib.sha256(content).digest())
    with pytest.raises(NativeLibraryError, match=cache.name):
        load_library()


def test_processes_that_start_together_all_get_the_library_that_one_of_them_builds(tmp_path):
    known = native_library()
    if known is None:
        pytest.skip("no C++ compiler is installed")
    # It writes what the real one has built: the last argument names the file.
    compiler = tmp_path / "c++"
    compiler.write_text(f'#!/bin/sh\necho built >> {tmp_path}/builds\nfor last; do :; done\ncp {known.path} "$last"\n')
    compiler.chmod(0o755)
    environment = {**os.environ, "JAXARC_CACHE": str(tmp_path), "CXX": str(compiler)}
    start = lambda: subprocess.Popen([sys.executable, "-c", SHOW], env=environment, stdout=subprocess.PIPE, text=True)
    printed = [process.communicate()[0].strip() for process in [start() for _ in range(3)]]
    assert printed == ["native native 0"] * 3
    assert (tmp_path / "builds").read_text() == "built\n"
    assert [path.suffix for path in (tmp_path / "native").iterdir() if path.name != ".lock"] == [".so"]


@pytest.mark.skipif(shutil.which("make") is None, reason="it is a target of make")
@pytest.mark.parametrize("program", ["kernels", "calls", "search"])
def test_sanitizers_find_nothing(program, tmp_path):
    """Of the kernels few of the batches of ``make sanitize``; docs/reliability.md says how many more were played."""
    root = Path(library.__file__).parents[3]
    here = [
        "READY=",
        f"BIN={Path(sys.executable).parent}",
        f"SANITIZED={tmp_path}",
        f"CXX={shlex.join(find_compiler())}",
    ]
    command = ["make", "--silent", f"sanitize-{program}", "ARGS=100", *here]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("wrong", [jnp.zeros(3, jnp.int8), jnp.zeros(4, jnp.int32), jnp.zeros(3, jnp.float32)])
def test_a_kernel_refuses_arrays_of_another_type_or_size(wrong):
    """Whoever calls it: nothing is read of them."""
    if native_library() is None:
        pytest.skip("no C++ compiler is installed")
    words = jnp.zeros((1, 2), jnp.uint32)
    right = native_call("fold_in", (), (words, jnp.zeros(3, jnp.int32)), ((0, (3, 2)),), 0, None)
    assert right[0].shape == (3, 2)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"INVALID_ARGUMENT: .*kernel reads"):
        jax.block_until_ready(native_call("fold_in", (), (words, wrong), ((0, (3, 2)),), 0, None))
