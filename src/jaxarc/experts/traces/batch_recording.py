"""Units recorded by an expert that solves many at once."""

from collections.abc import Mapping

from jaxarc.experts.expert import ExpertError
from jaxarc.experts.traces.batch_expert import BatchExpert
from jaxarc.experts.traces.cache import TraceCache
from jaxarc.experts.traces.trace import Failure, Trace, checked_trace, failure_of
from jaxarc.experts.traces.work_unit import WorkUnit


def solve_units(
    expert: BatchExpert, work_units: Mapping[str, str], cache: TraceCache | None
) -> tuple[dict[str, Trace | Failure], int]:
    """Record units, those in the cache from there; returns what came out by hash, and how many came from the cache."""
    results: dict[str, Trace | Failure] = {}
    for unit_hash in work_units:
        if cache is not None and (trace := cache.get(unit_hash)) is not None:
            results[unit_hash] = trace
    num_cached = len(results)
    left = [unit_hash for unit_hash in work_units if unit_hash not in results]
    units = {unit_hash: WorkUnit.from_json(work_units[unit_hash]) for unit_hash in left}
    if left:
        pairs = [unit.pair for unit in units.values()]
        for place, actions in expert.solve_all(pairs, units[left[0]].recipe.action_format):
            unit_hash = left[place]
            try:
                results[unit_hash] = trace = checked_trace(unit_hash, units[unit_hash], actions)
            except ExpertError as error:
                results[unit_hash] = failure_of(unit_hash, error)
            else:
                if cache is not None:
                    cache.put(trace)
    return {unit_hash: results[unit_hash] for unit_hash in work_units}, num_cached
