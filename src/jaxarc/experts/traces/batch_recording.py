"""Units recorded by an expert that solves many at once."""

from collections.abc import Iterator, Mapping
from typing import Any

from jaxarc.experts.expert import ExpertError
from jaxarc.experts.traces.batch_expert import BatchExpert
from jaxarc.experts.traces.cache import TraceCache
from jaxarc.experts.traces.trace import Caught, Failure, Trace, checked_trace, failure_of
from jaxarc.experts.traces.work_unit import WorkUnit


def solve_units(
    expert: BatchExpert, work_units: Mapping[str, str], cache: TraceCache | None
) -> tuple[dict[str, Trace | Failure], int]:
    """Record units, those in the cache from there; returns what came out by hash, and how many came from the cache.

    Raises:
        ExpertError: the expert refuses to begin, because it does not know the action format, say. Whatever else it
            raises is the failure of the units that it gave no answer for.
        OSError: the cache cannot be read or written.
    """
    results: dict[str, Trace | Failure] = {}
    for unit_hash in work_units:
        if cache is not None and (trace := cache.get(unit_hash)) is not None:
            results[unit_hash] = trace
    num_cached = len(results)
    units = {one: WorkUnit.from_json(text) for one, text in work_units.items() if one not in results}
    for unit_hash, actions, error in _answers(expert, units) if units else ():
        result = _result(unit_hash, units[unit_hash], actions, error)
        if cache is not None and isinstance(result, Trace):
            cache.put(result)
        results[unit_hash] = result
    return {unit_hash: results[unit_hash] for unit_hash in work_units}, num_cached


def _answers(expert: BatchExpert, units: Mapping[str, WorkUnit]) -> Iterator[tuple[str, Any, Exception | None]]:
    """Ask the expert; yield its actions for each unit, and in the end an error for those that it gave none for."""
    hashes, waiting, answers = list(units), dict.fromkeys(units), None
    while True:
        answer: tuple[str, Any] | None = None
        with Caught() as caught:
            if answers is None:
                pairs = [unit.pair for unit in units.values()]
                answers = iter(expert.solve_all(pairs, units[hashes[0]].spec.action_format))
            place, actions = next(answers)
            answer = hashes[place], actions
        if answer is None:
            break
        waiting.pop(answer[0], None)
        yield *answer, None
    if isinstance(caught.error, ExpertError) and len(waiting) == len(hashes):
        raise caught.error
    is_over = isinstance(caught.error, StopIteration)
    error = ExpertError(f"{expert.name} gave no answer for this pair") if is_over else caught.error
    yield from ((unit_hash, None, error) for unit_hash in waiting)


def _result(unit_hash: str, unit: WorkUnit, actions: Any, error: Exception | None) -> Trace | Failure:
    if error is not None:
        return failure_of(unit_hash, error)
    with Caught() as caught:
        return checked_trace(unit_hash, unit, actions)
    return failure_of(unit_hash, caught.error)
