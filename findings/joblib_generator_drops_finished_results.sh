#!/usr/bin/env bash
# joblib 1.6.0. Python 3.10 or later.
#
# One expects: Parallel(return_as="generator") gives the results of the jobs that finished, in order, and then the error
#   of the one that failed.
# What happens: if the consumer is busy while a later job fails, the error comes first and every finished result that was
#   not fetched yet is gone, with "generator_unordered" too. A prompt consumer gets them. (Here with threads.)
# Why it matters: who evaluates tasks in parallel and writes a line each loses hours of finished tasks to one exception,
#   depending on how fast the lines are written. Catch errors inside the job and return them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile joblib==1.6.0
cat > "$folder/jobs.py" <<'EOF'
import time

from joblib import Parallel, delayed


def job(number):
    if number == 3:
        time.sleep(1)
        raise ValueError("job 3 fails")
    return number


def received(return_as, first_takes):
    """The results that come before the error, if the consumer waits before it fetches any."""
    results = Parallel(n_jobs=2, backend="threading", return_as=return_as)(delayed(job)(one) for one in range(4))
    time.sleep(first_takes)
    found = []
    try:
        for result in results:
            found.append(result)
    except ValueError as error:
        return found, str(error)


if __name__ == "__main__":
    seen = {}
    for return_as in ("generator", "generator_unordered"):
        for seconds in (0, 3):
            seen[return_as, seconds] = found, error = received(return_as, seconds)
            print(f"{return_as}, the consumer waits {seconds} s: results {found}, then: {error}")
    assert sorted(seen["generator", 0][0]) == sorted(seen["generator_unordered", 0][0]) == [0, 1, 2]
    assert seen["generator", 3][0] == seen["generator_unordered", 3][0] == []
EOF
"$folder/venv/bin/python" "$folder/jobs.py"
