"""The check of numbers passes with this JAX, and finds and names what it is for."""

import warnings

import jax.numpy as jnp
import pytest

from jaxarc.profiling import WrongNumbersWarning, check_numerics, numerics


def test_this_jax_computes_right_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = check_numerics()
    assert report.wrong == {}
    assert report.num_programs == len(numerics._PROGRAMS)


@pytest.mark.parametrize("name", numerics._PROGRAMS)
def test_one_wrong_row_of_any_program_is_found(monkeypatch, name):
    program = numerics._PROGRAMS[name]

    def compute_last_row_wrongly(*args):
        right = program.compute(*args)
        return right.at[-1].add(jnp.float32(0.1))

    monkeypatch.setattr(numerics, "_PROGRAMS", {name: program._replace(compute=compute_last_row_wrongly)})
    with pytest.warns(WrongNumbersWarning, match=name) as caught:
        report = check_numerics()
    assert list(report.wrong) == [name]
    assert len(caught) == 1


def test_a_result_that_is_no_number_is_wrong(monkeypatch):
    program = numerics._PROGRAMS["probabilities"]
    broken = program._replace(compute=lambda logits: program.compute(logits) * jnp.float32("nan"))
    monkeypatch.setattr(numerics, "_PROGRAMS", {"probabilities": broken})
    with pytest.warns(WrongNumbersWarning, match="921,600 of 921,600 values are wrong"):
        check_numerics()
