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

    exit_code: ClassVar[int] = 1  # 1: data, files or a run that failed; 2: a wrong command line or config

    def __str__(self) -> str:
        """Return the message as it was written; ``KeyError`` alone would put it in quotation marks."""
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()
