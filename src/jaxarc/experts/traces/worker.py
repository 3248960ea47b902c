"""The program of a worker process: solves pairs for one expert, a line in and a line out, without JAX.

``python -m jaxarc.experts.traces.worker`` reads from its standard input first a pickled ``(sys.path, expert)`` in
base64, then the text of a unit on each line, and answers each with a line of JSON.
"""

import base64
import contextlib
import json
import os
import pickle
import queue
import signal
import sys
import threading
from typing import IO, Any

from jaxarc.experts.expert import Expert
from jaxarc.experts.traces.trace import Caught, checked_actions, failure_of
from jaxarc.experts.traces.work_unit import WorkUnit


def main() -> None:
    """Answer lines until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    units = os.dup(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # an expert, or a program that it starts, must not read the units away
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # what an expert prints must not come between the answers
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(units, lines), daemon=True).start()
        expert = _start(lines.get(), answers)
        while True:
            _answer(answers, _solve(expert, lines.get()))


def _read(units: int, lines: "queue.SimpleQueue[str]") -> None:
    """Pass on the lines; when there are no more the parent has ended, and so does this process, whatever it does."""
    with os.fdopen(units, encoding="utf-8") as texts:
        for line in texts:
            lines.put(line)
    os._exit(0)


def _start(line: str, answers: IO[str]) -> Expert:
    with Caught() as caught:
        path, pickled = pickle.loads(base64.b64decode(line))
        sys.path[:] = path
        expert = pickle.loads(pickled)
        _answer(answers, {"ready": True})
        return expert
    _answer(answers, _explained(caught.error))
    sys.exit(1)


def _solve(expert: Expert, text: str) -> dict[str, Any]:
    unit = WorkUnit.from_json(text)
    with Caught() as caught:
        action_format = unit.spec.action_format
        return {"actions": checked_actions(unit.pair, expert.solve(unit.pair, action_format), action_format)}
    return _explained(caught.error)


def _explained(error: Exception | None) -> dict[str, Any]:
    return {"error": failure_of("", error)[1:]}


def _answer(answers: IO[str], answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # the parent has ended
        main()
