"""Jobs done in this process, in processes beside it, on a SLURM cluster, or on Ray."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxarc.jobs.job import HERE, Job, JobsError, Outcome, Place, key_of
from jaxarc.jobs.local import do_in_processes
from jaxarc.jobs.results import Results


def run(
    jobs: Sequence[Job],
    place: Place = HERE,
    begin: Job | None = None,
    folder: Path | None = None,
    about: Mapping[str, Any] | None = None,
    known: Collection[int] = (),
) -> Iterator[Outcome]:
    """Do jobs, and yield the outcome of each as soon as it is known, in no order.

    With a folder, what is there is yielded and not done again, except for faults; equal jobs are done once.

    Args:
        jobs: with a folder, they return values of JSON.
        place: where.
        begin: done in each process before its first job, whose functions get its result as their first argument.
        folder: where outcomes are kept; ``slurm`` needs one, which its nodes can read by this path.
        about: the settings on which the jobs depend, by which the folder is known again.
        known: indices of jobs whose outcomes nobody needs any more.

    Raises:
        JobsError: the folder is of other jobs, a job cannot be sent, or the place is not there.
        OSError: the folder cannot be read or written.
    """
    if folder is None and place.engine == "slurm":
        raise JobsError("jobs on SLURM need a folder that all nodes see")
    keys = [str(index) if folder is None else key_of(job, begin) for index, job in enumerate(jobs)]
    results = None if folder is None else Results.of(folder, keys, about or {})
    indices: dict[str, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        if index not in known:
            indices[key].append(index)
    left = {}
    for key, same in indices.items():
        found = results.get(key) if results else None
        if found is not None and not found.fault:
            yield from (found._replace(job=index) for index in same)
            continue
        left[key] = jobs[same[0]]
        if results:
            results.drop(key)
    for key, outcome in _do(left, place, begin, results):
        if results and place.engine != "slurm":
            results.put(key, outcome)
        yield from (outcome._replace(job=index) for index in indices[key])


def _do(
    jobs: Mapping[str, Job], place: Place, begin: Job | None, results: Results | None
) -> Iterator[tuple[str, Outcome]]:
    if not jobs:
        return
    if place.engine == "slurm":
        from jaxarc.jobs.slurm_arrays import do_on_slurm

        assert results is not None
        yield from do_on_slurm(jobs, place, begin, results)
    elif place.engine == "ray":
        from jaxarc.jobs.ray_actors import do_on_ray

        yield from do_on_ray(jobs, place, begin)
    elif place.engine == "local":
        yield from do_in_processes(jobs, place.shards, begin)
    else:
        given = () if begin is None else (begin.function(*begin.arguments),)
        for key, job in jobs.items():
            yield key, Outcome(0, job.function(*given, *job.arguments))
