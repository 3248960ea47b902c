"""The base classes of every error that jaxarc raises on purpose, and of its warnings that quote names.

An error class derives from :class:`JaxarcError` and from the builtin class that says what kind of mistake it is
(``ValueError``, ``KeyError``, ``OSError``, ...), in this order. ``except ValueError`` keeps working, and
``except JaxarcError`` catches every mistake that jaxarc found itself.
"""

import operator
from typing import Any, ClassVar


def visible(text: str) -> str:
    """Return a text in one line, in which a terminal obeys nothing: a line break becomes a backslash and n.

    Names of files and tasks may hold line breaks and escape sequences, and quoted as they are, these would move the
    cursor, or pass for a message of ours.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


class JaxarcError(Exception):
    """A mistake that a user can correct; the message names the value, the rule and the fix.

    The command ``jaxarc`` prints the message as one line and ends with :attr:`exit_code`.
    """

    exit_code: ClassVar[int] = 1  # everything asked for is right, and data, files, the machine or a run fail

    def __str__(self) -> str:
        """Return the message in one line; ``KeyError`` alone would put it in quotation marks."""
        return visible(str(self.args[0]) if len(self.args) == 1 else super().__str__())


class UsageError(JaxarcError):
    """A name, a value or a path that was given is wrong, or there is nothing of this name."""

    exit_code: ClassVar[int] = 2


class JaxarcWarning(UserWarning):
    """Something that a user should know of a file or a name; the message is one line."""

    def __str__(self) -> str:
        """Return the message in one line."""
        return visible(super().__str__())


def whole_number(value: Any, name: str, error: type[JaxarcError]) -> int:
    """Return an integer of Python, NumPy or JAX as an ``int``, where a float, a text or a list is a mistake.

    ``int(3.7)`` is 3, and ``np.uint8(20) * 64`` is 0.

    Raises:
        error: the value is none; the message begins with ``name``.
    """
    try:
        return operator.index(value)
    except TypeError as wrong:
        raise error(f"{name} is a whole number, got {value!r:.40}; pass an int") from wrong
