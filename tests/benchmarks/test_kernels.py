"""The script that times two forms of the same work."""

import re

import kernels


def test_every_pair_is_timed_and_printed(capsys, monkeypatch):
    monkeypatch.setattr(kernels, "REPEATS", 1)
    monkeypatch.setattr(kernels, "ROUNDS", 1)
    kernels.main()
    out = capsys.readouterr().out
    assert len(re.findall(r"\d ns$", out, re.MULTILINE)) == 5
    assert len(re.findall(r"\d ns   [\d.]+ times$", out, re.MULTILINE)) == 5
