"""Play all cases with one package and print what was seen, as JSON: `python play_cases.py PLAYER FOLDER`.

The folder holds the tasks as files. The player is a module beside this one with a function `make_player(folder)`.
"""

import importlib
import json
import sys
from pathlib import Path

from cases import CASES, NotOfferedError, RefusedError


def main() -> None:
    player, packages = importlib.import_module(sys.argv[1]).make_player(Path(sys.argv[2]))
    seen = []
    for case in CASES:
        try:
            holds, said = case.show(player)
        except NotOfferedError as error:
            holds, said = None, str(error)
        except RefusedError as error:
            holds, said = False, f"refused: {error}"
        seen.append({"rule": case.rule, "holds": None if holds is None else bool(holds), "seen": said})
    print(json.dumps({"packages": packages, "seen": seen}))


if __name__ == "__main__":
    main()
