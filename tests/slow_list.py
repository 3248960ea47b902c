"""The list of slow and nightly tests, ``slow_tests.txt``: how it is read, and how it is written anew."""

import collections
import pathlib


def list_anew(named, seconds, limit):
    """Return the lines of what is nightly, of what did not run, and of what took so long.

    A slow test is named by its file, or else without its case, where the tests of that name take half the limit on
    average: of a file with tests of 3 s, 2 s and 0.1 s and a limit of 1 s the file is named. So the list stays short.
    """
    by_hand = {name for name in named if "nightly" in (named.get(wider) for wider in names_of(name))}
    ran = {name for test in seconds for name in names_of(test)}
    kept = {name: when for name, when in named.items() if name in by_hand or name not in ran}
    judged = {test: took for test, took in seconds.items() if kept.keys().isdisjoint(names_of(test))}
    spent, count = collections.Counter(), collections.Counter()
    for test, took in judged.items():
        for name in names_of(test):
            spent[name] += took
            count[name] += 1
    is_slow = lambda name: spent[name] >= limit / 2 * count[name]
    slow = {next(filter(is_slow, names_of(test)[-3:])) for test, took in judged.items() if took >= limit}
    lines = [f"{name} {when}".strip() for name, when in {**kept, **dict.fromkeys(slow, "")}.items()]
    return sorted(lines, key=lambda line: (not line.endswith(" nightly"), line))


def read_list(path):
    """Return the head of the file, and what it names: the part of a test's name -> "nightly" or nothing."""
    lines = path.read_text(encoding="utf-8").splitlines()
    named = [line for line in lines if line and not line.startswith("#")]
    when = {line.removesuffix(" nightly"): "nightly" if line.endswith(" nightly") else "" for line in named}
    return [line for line in lines if line.startswith("#")], when


def names_of(test):
    """The folders, the file, the test without its case, and itself: all that a line of slow_tests.txt may name."""
    file, _, name = test.partition("::")
    folders = [str(folder) for folder in pathlib.PurePosixPath(file).parents][-2::-1]
    name, bracket, case = name.partition("[")
    name = name.rpartition("::")[2]  # without its class
    return [*folders, file, f"{file}::{name}", f"{file}::{name}{bracket}{case}"]
