"""A program that is kept on disk is found again by all that it depends on, and never for anything else."""

from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from jaxarc import BboxAction, JaxArcConfig
from jaxarc.parallel import stored_programs
from jaxarc.parallel.stored_programs import stored_path, trace_or_load
from jaxarc.tasks.augmentation import turn_all
from jaxarc.utils.error_handling import JAXErrorHandler

pytest.importorskip("flatbuffers")
GRIDS = jnp.arange(8, dtype=jnp.int8).reshape(2, 4)
STATIC = ((2, 2), 8)


@pytest.fixture
def folder(tmp_path):
    wanted = {"compilation_cache_dir": str(tmp_path), "persistent_cache_min_compile_time_secs": 0}
    before = {name: getattr(jax.config, f"jax_{name}") for name in wanted}
    for name, value in wanted.items():
        jax.config.update(f"jax_{name}", value)
    yield tmp_path
    for name, value in before.items():
        jax.config.update(f"jax_{name}", value)


def keep():
    """Return the file of a program and the program, and whether its function was traced."""
    path = stored_path(turn_all, (GRIDS,), STATIC)
    assert path is not None
    jax.clear_caches()
    stored_programs._programs.clear()
    with mock.patch.object(export, "export", wraps=export.export) as trace:
        program = trace_or_load(turn_all, (GRIDS,), STATIC, (), path).compile()
    return path, program, trace.called


def test_a_kept_program_is_run_without_tracing(folder):
    path, program, is_traced = keep()
    assert is_traced
    first = program(GRIDS)
    np.testing.assert_array_equal(first, turn_all(GRIDS, *STATIC))
    again, program, is_traced = keep()
    assert again == path
    assert not is_traced
    np.testing.assert_array_equal(program(GRIDS), first)
    assert program.memory_analysis().output_size_in_bytes == first.nbytes


def test_anything_that_changes_the_program_changes_its_file(folder, monkeypatch):
    path = stored_path(turn_all, (GRIDS,), STATIC)
    assert path == stored_path(turn_all, (GRIDS + jnp.int8(1),), STATIC)
    assert stored_path(turn_all, (GRIDS[:1],), STATIC) != path
    assert stored_path(turn_all, (GRIDS.astype(jnp.int32),), STATIC) != path
    assert stored_path(turn_all, (GRIDS,), ((2, 2), 4)) != path
    with jax.default_matmul_precision("highest"):
        assert stored_path(turn_all, (GRIDS,), STATIC) != path
    monkeypatch.setattr(JAXErrorHandler, "_mode", "off")
    assert stored_path(turn_all, (GRIDS,), STATIC) != path


class OfAUser:
    pass


@pytest.mark.parametrize("static", [(OfAUser(),), (OfAUser,), (lambda x: x,)])
def test_what_no_version_covers_is_not_kept(folder, static):
    assert stored_path(turn_all, (GRIDS,), static) is None
    assert stored_path(keep, (GRIDS,), ()) is None


@pytest.mark.parametrize("option", ["compilation_cache_dir", "enable_compilation_cache"])
def test_nothing_is_kept_where_jax_keeps_nothing(folder, option):
    before = getattr(jax.config, f"jax_{option}")
    jax.config.update(f"jax_{option}", None if option.endswith("dir") else False)
    try:
        assert stored_path(turn_all, (GRIDS,), STATIC) is None
    finally:
        jax.config.update(f"jax_{option}", before)


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: content[:40] + b"x" + content[41:]])
def test_a_damaged_program_is_traced_again(folder, damage):
    path, _, _ = keep()
    path.write_bytes(damage(path.read_bytes()))
    assert keep()[2]
    assert not keep()[2]


def test_a_program_that_calls_back_is_not_kept(folder):
    config = JaxArcConfig().with_fields(selection_format="bbox")
    action = jax.tree.map(jnp.asarray, BboxAction(3, 0, 0, 1, 1))
    path = stored_path(JAXErrorHandler.validate_action, (action,), (config,))
    program = trace_or_load(JAXErrorHandler.validate_action, (action,), (config,), (), path).compile()
    assert program(action).operation == 3
    assert path is not None
    assert not path.exists()
