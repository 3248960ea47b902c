"""Work that leaves the process: pure functions of picklable descriptions, and the cores and memory that it may use."""

from jaxarc.jobs.cores import host_cores
from jaxarc.jobs.host_memory import host_memory
from jaxarc.jobs.local import DIED, TIME_LIMIT, Job, JobsError, Outcome, Processes, run

__all__ = ["DIED", "TIME_LIMIT", "Job", "JobsError", "Outcome", "Processes", "host_cores", "host_memory", "run"]
