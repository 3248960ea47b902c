"""Functions for jobs that leave a line in a file for each call, so that tests count what is done twice."""

import os
import signal
import time


def square(calls, number):
    """Return the square of a number."""
    with calls.open("a") as file:
        file.write(f"{number}\n")
    return number * number


def slow_square(calls, number):
    """The same, in half a second."""
    time.sleep(0.5)
    return square(calls, number)


def square_or_end_the_shard(calls, number):
    """The same, but the first call for 3 kills the process that it works for, as the end of its machine would."""
    if number == 3 and not calls.with_suffix(".lost").exists():
        calls.with_suffix(".lost").touch()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)  # this process ends with it
    return square(calls, number)


def die_once(calls, number):
    """The same, but the process dies as long as a file is there."""
    if calls.with_suffix(".deadly").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return square(calls, number)
