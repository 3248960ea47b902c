"""Stands in for a worker process: answers at once, and writes down what it was asked. Run as a script by the tests."""

import json
import sys
import time

sys.path.insert(0, sys.argv[1])  # where worker_protocol.py lies

from worker_protocol import serve

NAME, LOG, RATE = sys.argv[2], sys.argv[3], float(sys.argv[4])


def note(what):
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(json.dumps([NAME, what]) + "\n")


def measure(request):
    print("a package that talks")
    note(request["mode"])
    if request["mode"] == "crash":
        raise SystemExit(7)
    if request["mode"] == "sleep":
        time.sleep(60)
    return RATE * request["batch"]


serve(lambda: {"package": NAME, "jax": "0.0"}, measure, lambda: note("forget"))
