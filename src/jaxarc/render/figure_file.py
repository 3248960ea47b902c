"""A figure as a PNG file, written whole or not at all."""

import io
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from jaxarc.files import write_whole


def write_png(figure: Figure, path: Path) -> None:
    """Write a figure; equal figures give equal bytes.

    Raises:
        OSError: the file cannot be written; what was there stays.
    """
    picture = io.BytesIO()
    FigureCanvasAgg(figure).print_png(picture, metadata={"Software": None})
    write_whole(path, picture.getvalue())
