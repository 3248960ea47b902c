"""``python -m jaxarc`` is the command ``jaxarc``."""

from jaxarc.cli.main import main

if __name__ == "__main__":
    main()
