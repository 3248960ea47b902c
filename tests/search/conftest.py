import pytest

from jaxarc.search import Found, GridProgram
from jaxarc.search.graph import OutputCells, StateGraph

make = Found.__init__


@pytest.fixture(autouse=True)
def _every_text_is_read_back(monkeypatch):
    """Read each program of each search of these tests back from its text."""

    def checked(self, *fields, **named):
        make(self, *fields, **named)
        assert self.program is None or GridProgram.parse(str(self.program)) == self.program

    monkeypatch.setattr(Found, "__init__", checked)


@pytest.fixture
def canvas_of():
    """What a finder of rules looks at: inputs, the last one of a test, and outputs; without any words."""

    def made(inputs, outputs):
        graph = StateGraph(inputs, max(side for grid in inputs for side in grid.shape), (), 1)
        return OutputCells(graph, outputs, inputs[-1].shape)

    return made
