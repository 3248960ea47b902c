"""A folder of results: what is there is not done again, and no other jobs may go on in it."""

from dataclasses import dataclass

import numpy as np
import pytest
from jobs.counted_jobs import die_once, square

from jaxarc.jobs import HERE, Job, JobsError, Place, remove_results, results, run
from jaxarc.jobs.job import key_of


@pytest.fixture
def calls(tmp_path):
    return tmp_path / "calls"


def numbers_in(calls):
    return sorted(map(int, calls.read_text().split()))


def do(folder, calls, numbers=(1, 2, 3), place=HERE, function=square, **about):
    """Yield number and square, or fault."""
    jobs = [Job(function, (calls, number)) for number in numbers]
    return ((numbers[done.job], done.value or done.fault) for done in run(jobs, place, folder=folder, about=about))


@pytest.mark.parametrize("place", [HERE, Place(shards=2)])
def test_what_is_done_is_not_done_again(tmp_path, calls, place):
    started = do(tmp_path / "jobs", calls)
    assert next(started) == (1, 1)
    started.close()
    assert dict(do(tmp_path / "jobs", calls, place=place)) == {1: 1, 2: 4, 3: 9}
    assert numbers_in(calls) == [1, 2, 3]


def test_equal_jobs_are_done_once(tmp_path, calls):
    assert sorted(do(tmp_path / "jobs", calls, (2, 3, 2))) == [(2, 4), (2, 4), (3, 9)]
    assert numbers_in(calls) == [2, 3]


def test_other_settings_jobs_or_code_are_refused_by_name(tmp_path, calls, monkeypatch):
    list(do(tmp_path, calls, limit=3, kept=1))
    for numbers, limit, words in ((1, 2, 3), 4, "limit is 3 there and 4 here"), ((1, 2), 3, "the jobs is"):
        with pytest.raises(JobsError, match=words) as refused:
            list(do(tmp_path, calls, numbers, limit=limit, kept=1))
        assert "kept" not in str(refused.value)
    monkeypatch.setattr(results, "code_digest", lambda: "other")
    with pytest.raises(JobsError, match=r"the code of jaxarc is .* there and 'other' here"):
        list(do(tmp_path, calls, limit=3, kept=1))
    assert numbers_in(calls) == [1, 2, 3]


def test_a_damaged_result_is_none(tmp_path, calls):
    list(do(tmp_path / "jobs", calls))
    first, second, third = sorted((tmp_path / "jobs").glob("????????*.json"))
    first.write_bytes(b"")
    second.write_text(second.read_text().replace('"value": ', '"value": 7'))
    third.write_text("[]")
    assert dict(do(tmp_path / "jobs", calls)) == {1: 1, 2: 4, 3: 9}
    assert numbers_in(calls) == [1, 1, 2, 2, 3, 3]


def test_a_fault_keeps_the_folder_and_is_tried_again_by_the_next_call(tmp_path, calls):
    calls.with_suffix(".deadly").touch()
    one = {"place": Place(), "function": die_once, "numbers": (5,)}
    assert dict(do(tmp_path / "jobs", calls, **one)) == {5: "the process died (SIGKILL)"}
    remove_results(tmp_path / "jobs")
    calls.with_suffix(".deadly").unlink()
    assert dict(do(tmp_path / "jobs", calls, **one)) == {5: 25}
    remove_results(tmp_path / "jobs")
    assert not (tmp_path / "jobs").exists()


@dataclass(frozen=True)
class Settings:
    """What a job may depend on."""

    side: int = 3


def test_a_key_is_of_what_is_computed():
    grid = np.arange(6, dtype=np.int8).reshape(2, 3)
    job = Job(square, (grid, Settings(), "a" * 2))
    assert key_of(job._replace(limit_s=3.0, home=1)) == key_of(Job(square, (grid.T.T.copy(), Settings(3), "aa")))
    others = [
        Job(die_once, job.arguments),
        Job(square, (grid.astype(np.int16), *job.arguments[1:])),
        Job(square, (grid.reshape(3, 2), *job.arguments[1:])),
        Job(square, (grid, Settings(4), "aa")),
    ]
    keys = {key_of(job), key_of(job, Job(int)), key_of(job, Job(int, ("1",))), *map(key_of, others)}
    assert len(keys) == 3 + len(others)
    with pytest.raises(JobsError, match="object"):
        key_of(Job(square, (object(),)))
