"""The command ``jaxarc``, which is ``python -m jaxarc`` as well."""

import os
import signal


def main() -> None:
    """Import the command and run it."""
    # Ctrl-C amid the imports ends the process without a traceback; then the command handles its signals itself.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from jaxarc.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
