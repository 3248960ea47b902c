"""Work that leaves the process: pure functions of picklable descriptions, where they are done, and their results."""

from jaxarc.jobs.cores import host_cores
from jaxarc.jobs.host_memory import host_memory
from jaxarc.jobs.job import DIED, HERE, TIME_LIMIT, Engine, Job, JobsError, Outcome, Place
from jaxarc.jobs.local import Processes, bringing
from jaxarc.jobs.places import run
from jaxarc.jobs.results import remove_results

__all__ = [
    "DIED",
    "HERE",
    "TIME_LIMIT",
    "Engine",
    "Job",
    "JobsError",
    "Outcome",
    "Place",
    "Processes",
    "bringing",
    "host_cores",
    "host_memory",
    "remove_results",
    "run",
]
