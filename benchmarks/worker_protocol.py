"""How a worker process talks: JSON lines, one request on stdin, one answer on stdout.

Two packages named ``jaxarc`` cannot live in one process. Each worker keeps what it compiled, so that turns can
alternate without compiling again. Only the standard library is imported here: workers run in different environments.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

Request = dict[str, Any]
"""``kind``: steps, resets or loop; ``mode``, ``selection``, ``side``, ``batch``, ``seconds``,
``longest_scan``."""


def serve(
    describe: Callable[[], dict[str, str]], measure: Callable[[Request], float], forget: Callable[[], None]
) -> None:
    """Say who this is, then answer requests until stdin closes.

    Args:
        describe: package and versions.
        measure: environment steps (or resets) per second; called again with the same request for another sample.
        forget: drop whatever was compiled.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what packages print must not come between the answers
    _write(answers, describe())
    for line in sys.stdin:
        request = json.loads(line)
        if request["kind"] == "forget":
            forget()
            _write(answers, {"value": 0.0})
        else:
            _write(answers, {"value": measure(request)})


def _write(answers: Any, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
