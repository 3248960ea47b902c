"""Episodes as animated GIFs."""

from collections.abc import Sequence
from io import BytesIO
from typing import Final

from PIL import Image

from jaxarc.render import pixels
from jaxarc.render.palette import ARC_COLORS, Palette
from jaxarc.render.pictures import Frame, draw_frame

_BORDER: Final = 12  # pixels


def animate(
    frames: Sequence[Frame],
    cell_size: int = 16,
    frame_ms: int = 400,
    last_ms: int = 1600,
    palette: Palette = ARC_COLORS,
) -> bytes:
    """Draw an episode as a GIF that repeats: working grid, target and difference beside each other.

    Args:
        frames: one for each step, the start included.
        cell_size: pixels of a cell's side.
        frame_ms: milliseconds that a step is shown.
        last_ms: milliseconds that the last one is.
        palette: the ten colors.

    Raises:
        ValueError: there is no frame.
    """
    images = [draw_frame(pixels, frame, cell_size, palette) for frame in frames]
    return join_frames(images, [frame_ms] * (len(images) - 1) + [last_ms])


def join_frames(images: Sequence[Image.Image], durations_ms: Sequence[int]) -> bytes:
    """Put images into one GIF, each in the top left of a ground that holds the largest.

    Raises:
        ValueError: there is no image, or not a duration for each.
    """
    if not images or len(images) != len(durations_ms):
        raise ValueError(
            f"an animation has images and a duration for each, got {len(images)} and {len(durations_ms)}; bring both"
        )
    size = max(image.width for image in images) + 2 * _BORDER, max(image.height for image in images) + 2 * _BORDER
    frames = []
    for image in images:
        frame = Image.new("RGB", size, pixels.GROUND)
        frame.paste(image, (_BORDER, _BORDER))
        frames.append(frame)
    file = BytesIO()
    frames[0].save(
        file, "GIF", save_all=True, append_images=frames[1:], duration=list(durations_ms), loop=0, optimize=True
    )
    return file.getvalue()
