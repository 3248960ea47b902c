"""Jobs in other processes: what becomes of them where a process dies or takes too long, and of the processes."""

import os
import signal
import subprocess
import sys
import time

import pytest

from jaxarc.jobs import DIED, TIME_LIMIT, Job, JobsError, Place, Processes, run


def square(number):
    return number * number


def die_at_first(path):
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def fork_and_die(path):
    """A child of the worker holds its pipe, and would go on."""
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    path.write_text("forked")
    die()


def own_pid():
    return os.getpid()


def write_pid_and_work(path, is_busy):
    path.write_text(str(os.getpid()))
    while is_busy:
        pass


def by_job(outcomes):
    return {done.job: (done.value, done.fault) for done in outcomes}


def test_a_death_and_a_limit_end_only_their_job_and_what_died_once_is_done_again(tmp_path):
    jobs = [Job(square, (number,)) for number in range(4)]
    jobs += [Job(die_at_first, (tmp_path / "file",)), Job(die), Job(time.sleep, (600,), limit_s=0.3), Job(square, (9,))]
    found = by_job(run(jobs, Place(shards=2)))
    assert [found[place] for place in (0, 1, 2, 3, 7)] == [(n * n, None) for n in (0, 1, 2, 3, 9)]
    assert found[4] == ("done", None)
    assert found[5] == (None, f"{DIED} (SIGKILL)")
    assert found[6] == (None, f"{TIME_LIMIT} of 0.3 s")


@pytest.mark.skipif(sys.platform == "win32", reason="has no forks")
def test_what_a_dead_process_has_forked_holds_nothing_up(tmp_path):
    began = time.monotonic()
    ((_, fault),) = by_job(run([Job(fork_and_die, (tmp_path / "file",))], Place())).values()
    assert fault == f"{DIED} (SIGKILL)"
    assert time.monotonic() - began < 55


def test_the_clock_of_the_wall_ends_no_job(monkeypatch):
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + 3600 * (time.monotonic() % 2 > 1))
    assert by_job(run([Job(square, (3,), limit_s=600)], Place())) == {0: (9, None)}


def test_a_worker_that_is_killed_between_two_jobs_costs_none():
    with Processes(1) as workers:
        ((pid, _),) = by_job(workers.run([Job(own_pid)])).values()
        os.kill(pid, signal.SIGKILL)
        assert by_job(workers.run([Job(square, (3,))])) == {0: (9, None)}


def test_a_job_goes_to_the_worker_that_it_names():
    with Processes(2) as workers:
        list(workers.run([Job(time.sleep, (1.0,)), Job(time.sleep, (1.0,))]))
        jobs = [Job(own_pid, home=1), Job(own_pid, home=0)]
        pids = [by_job(workers.run(jobs)) for _ in range(3)]
    assert pids[0][0] != pids[0][1]
    assert pids[1:] == pids[:1] * 2


def test_a_script_needs_no_guard_and_is_not_run_again(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from jaxarc.jobs import Job, Place, run\nprint(list(run([Job(pow, (2, 3))], Place())))\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=True)
    assert (done.stdout.count("Outcome"), "value=8" in done.stdout) == (1, True)


def test_a_process_that_ends_before_it_begins_is_one_error():
    with pytest.raises(JobsError, match=r"does not start \(exit code 3\)"):
        list(run([Job(square, (2,))], Place(), begin=Job(os._exit, (3,))))


def test_what_begins_a_process_is_the_first_argument_of_its_jobs_and_its_error_is_named():
    assert by_job(run([Job(pow, (3,))], Place(), begin=Job(int, ("2",)))) == {0: (8, None)}
    with pytest.raises(JobsError, match=r"ValueError: .*'two'"):
        list(run([Job(pow, (3,))], Place(), begin=Job(int, ("two",))))


def test_what_cannot_be_sent_is_named():
    with pytest.raises(JobsError, match=r"square.*cannot be sent"):
        list(run([Job(square, (lambda: 3,))], Place()))
    with pytest.raises(JobsError, match=r"lambda.*cannot be sent"):
        list(run([Job(square)], Place(), begin=Job(lambda: 3)))


@pytest.mark.skipif(sys.platform == "win32", reason="has no signal 9")
@pytest.mark.parametrize("is_busy", [True, False])
def test_a_worker_ends_with_its_parent(tmp_path, is_busy):
    pid_file = tmp_path / "pid"
    code = (
        "import sys; from pathlib import Path\n"
        "from jobs.test_jobs import write_pid_and_work\nfrom jaxarc.jobs import Job, Processes\n"
        "with Processes(1) as workers:\n"
        f"    for _ in workers.run([Job(write_pid_and_work, (Path({str(pid_file)!r}), {is_busy}))]): sys.stdin.read()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    deadline = time.monotonic() + 100
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env=environment) as parent:
        while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        parent.kill()
    pid = int(pid_file.read_text())
    while _is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_running(pid)


def _is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return not done.stdout.strip().startswith("Z") and bool(done.stdout.strip())
