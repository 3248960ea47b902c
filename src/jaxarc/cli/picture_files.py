"""Picture files: the renderer that the ending of a name chooses, and the bytes of a drawing."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import typer
from PIL import Image

from jaxarc.render import pixels, svg
from jaxarc.render.layout import Renderer

RENDERERS: Final[dict[str, Renderer]] = {".svg": svg, ".png": pixels}

ColorsOption: TypeAlias = Annotated[
    Literal["arc", "safe"],
    typer.Option(help="For a picture: the ARC colors, or ten that color-blind people can distinguish."),
]


def require_kind(path: Path, *kinds: str) -> str:
    """Return the ending of a file's name."""
    kind = path.suffix.lower()
    if kind not in kinds:
        raise typer.BadParameter(
            f"{str(path)!r} has no ending that can be written; end it in {', '.join(kinds)}", param_hint="--output"
        )
    return kind


def bytes_of(drawing: Any, title: str) -> bytes:
    """Return what a file of a drawing of one of the :data:`RENDERERS` holds."""
    if isinstance(drawing, Image.Image):
        return pixels.to_png(drawing)
    return drawing.to_svg(title).encode()
