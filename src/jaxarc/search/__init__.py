"""Search programs that explain the demonstrations of a task, and answer test inputs whose outputs nobody shows."""

from jaxarc.search.programs import GridProgram, ProgramError
from jaxarc.search.rounds import Question, search_all
from jaxarc.search.solve import Found, SearchResult, solve
from jaxarc.search.words import Word, WordError

__all__ = [
    "Found",
    "GridProgram",
    "ProgramError",
    "Question",
    "SearchResult",
    "Word",
    "WordError",
    "search_all",
    "solve",
]
