"""The base class of every error that jaxarc raises on purpose.

An error class derives from :class:`JaxarcError` and from the builtin class that says what kind of mistake it is
(``ValueError``, ``KeyError``, ``OSError``, ...), in this order. ``except ValueError`` keeps working, and
``except JaxarcError`` catches every mistake that jaxarc found itself.
"""

from typing import ClassVar


class JaxarcError(Exception):
    """A mistake that a user can correct; the message names the value, the rule and the fix.

    The command ``jaxarc`` prints the message as one line and ends with :attr:`exit_code`.
    """

    exit_code: ClassVar[int] = 1  # everything asked for is right, and data, files, the machine or a run fail

    def __str__(self) -> str:
        """Return the message as it was written; ``KeyError`` alone would put it in quotation marks."""
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()


class UsageError(JaxarcError):
    """A name, a value or a path that was given is wrong, or there is nothing of this name."""

    exit_code: ClassVar[int] = 2
