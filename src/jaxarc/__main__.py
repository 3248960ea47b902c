"""The command ``jaxarc``, which is ``python -m jaxarc`` as well."""

import os
import signal
import sys


def main() -> None:
    """Import the command and run it."""
    # Ctrl-C amid the imports ends the process without a traceback; then the command handles its signals itself.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        from jaxarc.cli.main import main as run
    except ModuleNotFoundError as error:
        from jaxarc.extras import how_to_install

        sys.exit(how_to_install(error.name) or f"jaxarc cannot start: {error}")
    run()


if __name__ == "__main__":
    main()
