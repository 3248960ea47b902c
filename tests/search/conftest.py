import pytest

from jaxarc.search import Found, GridProgram

make = Found.__init__


@pytest.fixture(autouse=True)
def _every_text_is_read_back(monkeypatch):
    """Read each program of each search of these tests back from its text."""

    def checked(self, *fields, **named):
        make(self, *fields, **named)
        assert self.program is None or GridProgram.parse(str(self.program)) == self.program

    monkeypatch.setattr(Found, "__init__", checked)
