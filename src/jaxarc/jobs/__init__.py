"""Work that leaves the process: pure functions of picklable descriptions, and the cores that there are for it."""

from jaxarc.jobs.cores import host_cores
from jaxarc.jobs.local import DIED, TIME_LIMIT, Job, JobsError, Outcome, Processes, run

__all__ = ["DIED", "TIME_LIMIT", "Job", "JobsError", "Outcome", "Processes", "host_cores", "run"]
