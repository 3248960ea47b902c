import pytest

from jaxarc.search import Found, GridProgram, solve


@pytest.fixture(autouse=True)
def _every_text_is_read_back(monkeypatch):
    """Read each program of each search of these tests back from its text."""

    def checked(answer, program, *rest):
        assert program is None or GridProgram.parse(str(program)) == program
        return Found(answer, program, *rest)

    monkeypatch.setitem(solve.__globals__, "Found", checked)
