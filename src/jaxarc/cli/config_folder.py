"""Where the YAML files are."""

from pathlib import Path

import jaxarc


def config_folder() -> Path:
    """Return the folder of the YAML files: inside the installed package, or at the top of a checkout.

    Raises:
        FileNotFoundError: neither is there.
    """
    package = Path(jaxarc.__file__).resolve().parent
    places = (package / "configs", package.parents[1] / "configs")
    for place in places:
        if (place / "train.yaml").is_file():
            return place
    raise FileNotFoundError(
        f"no configs folder at {places[0]} (installed package) or {places[1]} (checkout); install jaxarc again"
    )
