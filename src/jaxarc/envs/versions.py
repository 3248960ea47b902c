"""Which behavior the environment has, as the number in ids such as ``jaxarc/arc-agi-1-training-v1``."""

from typing import Final

ENVIRONMENT_VERSION: Final = 1
"""Grows by one when an operation, an ending, a reward or an observation changes what it does, together with an entry
under *Semantics* in ``CHANGELOG.md``. Results of two versions do not compare."""
