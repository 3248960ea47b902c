"""Makes docs/errors.md of the bad calls that the tests make: ``python docs/make_errors.py``."""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from bad_input.table import PAGE, page_of, refusals
from bad_input.things import things


def main() -> None:
    """Make every call, and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page_of(refusals(things(Path(folder)), Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
