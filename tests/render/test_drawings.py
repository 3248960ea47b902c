"""Tasks, states and episodes as pictures: in SVG, in pixels, in a terminal, in a notebook."""

import io
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from rich.console import Console

import jaxarc
from jaxarc import constants as c
from jaxarc.datasets import load_tasks
from jaxarc.render import ARC_COLORS, PALETTES, SAFE_COLORS, Frame, animate, pixels, render_state, svg
from jaxarc.render.drawings import state_image, state_svg, task_image, task_svg
from jaxarc.render.palette import PADDING_COLOR, color_of, rgb
from jaxarc.tasks import create_mock_task

GRID = np.array([[0, 1, -1], [2, 3, -1]], np.int8)
GOAL = np.array([[0, 4, 5], [2, 3, -1]], np.int8)
SIDE = 10
BLIND = {  # Machado et al. 2009, severity 1, on linear red, green and blue
    "no red cones": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green cones": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "no blue cones": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


@pytest.fixture(scope="module")
def state():
    """Three steps into an episode of the guide API, with something on the clipboard."""
    config = jaxarc.JaxArcConfig().with_fields(selection_format="bbox", max_grid_height=5, max_grid_width=5)
    state, _ = jaxarc.arc_reset(jax.random.key(0), config, create_mock_task(5, 5))
    for action in ((c.COPY, 0, 0, 1, 1), (c.FILL + 5, 1, 1, 2, 3)):
        state, *_ = jaxarc.arc_step(state, jaxarc.BboxAction(*action), config)
    return state


def middle(image, row, column, side=SIDE, dx=0.5, dy=0.5):
    return image.getpixel((svg.MARGIN + round((column + dx) * side), svg.MARGIN + round((row + dy) * side)))


def texts_of(drawing):
    return [text.text for text in ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
def test_pixels_have_the_colors_of_the_grid(palette):
    image = pixels.draw_grid(GRID, cell_size=SIDE, palette=palette)
    for (row, column), color in np.ndenumerate(GRID):
        expected = rgb(color_of(int(color), palette))
        assert middle(image, row, column) == expected


def test_pixels_and_svg_have_the_same_size():
    image, drawing = pixels.draw_grid(GRID, GRID == 2, SIDE, True), svg.draw_grid(GRID, GRID == 2, SIDE, True)
    assert image.size == (drawing.width, drawing.height)
    joined = pixels.hstack([image, pixels.draw_arrow()]), svg.hstack([drawing, svg.draw_arrow()])
    assert joined[0].size == (joined[1].width, joined[1].height)


def test_the_selection_is_outlined_in_pixels():
    plain, marked = (pixels.draw_grid(GRID, selection, SIDE) for selection in (None, GRID == 2))
    differs = np.argwhere((np.asarray(plain) != np.asarray(marked)).any(axis=-1)) - svg.MARGIN
    assert differs[:, 0].min() == SIDE - 2
    assert differs[:, 1].max() == SIDE + 1


def test_a_difference_shows_what_is_and_what_should_be():
    image = pixels.draw_difference(GRID, GOAL, SIDE)
    assert middle(image, 0, 0) == rgb(svg.RIGHT_COLOR)
    assert middle(image, 0, 1, dx=0.3, dy=0.3) == rgb(ARC_COLORS[1])
    assert middle(image, 0, 1, dx=0.7, dy=0.7) == rgb(ARC_COLORS[4])
    assert middle(image, 0, 2, dx=0.7, dy=0.7) == rgb(ARC_COLORS[5]), "a cell that is missing"
    assert middle(image, 1, 2) == rgb(PADDING_COLOR)
    drawing = svg.draw_difference(GRID, GOAL, SIDE)
    assert (drawing.width, drawing.height) == image.size
    root = ElementTree.fromstring(drawing.to_svg())
    fills = {path.get("fill") for path in root.iter("{http://www.w3.org/2000/svg}path")}
    assert {ARC_COLORS[1], ARC_COLORS[4], ARC_COLORS[5], svg.RIGHT_COLOR} <= fills
    assert ARC_COLORS[2] not in fills, "colors of cells that are right are left out"


def test_a_difference_of_unlike_canvases_is_refused():
    for draw in (svg.draw_difference, pixels.draw_difference):
        with pytest.raises(ValueError, match=r"\(2, 3\).*\(2, 2\)"):
            draw(GRID, GOAL[:, :2])


def test_a_task_shows_all_its_pairs():
    task = create_mock_task(5, 5)
    texts = texts_of(task_svg(task, "mock"))
    assert texts == ["mock", "train 0", "train 1", "train 2", "test 0"]
    assert task_image(task, "mock").width > 4 * 5 * 12


def test_a_state_shows_input_grid_target_difference_clipboard_and_where_it_stands(state):
    words = ["input", "working grid", "target", "difference", "clipboard", texts_of(state_svg(state))[-1]]
    assert texts_of(state_svg(state)) == words
    share = 100 * float(state.similarity_score)
    assert words[-1] == f"step 2, similarity {share:.1f} %"
    assert state_image(state).height > 5 * 12


def test_notebooks_show_tasks_and_states(state):
    task = create_mock_task(5, 5)
    assert texts_of(task._repr_svg_()) == ["jaxarc/mock", "train 0", "train 1", "train 2", "test 0"]
    assert texts_of(state._repr_svg_()) == texts_of(state_svg(state))
    small = ElementTree.fromstring(load_tasks("arc-agi-1/training")["d037b0a7"]._repr_svg_())
    assert float(small.get("width")) > 800, "a 3x3 task is drawn in large cells"
    inside = []
    jax.jit(lambda task: inside.append(task._repr_svg_()))(task)
    assert inside == [None], "a tracer has no picture"


def test_notebooks_show_the_first_states_of_a_batch(state):
    batch = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (3, 10, *leaf.shape)), state)
    texts = texts_of(batch._repr_svg_())
    assert texts[0] == "the first 16 of 30 states"
    assert [text.partition(":")[0] for text in texts[1:]] == [str(index) for index in range(16)]


def test_notebooks_show_a_contact_sheet_of_a_task_set():
    tasks = load_tasks("arc-agi-1/training")
    html = tasks._repr_html_()
    assert repr(tasks) in html.replace("&#x27;", "'")
    assert html.count("<svg") == 24
    assert all(task_id in html for task_id in tasks.task_ids[:24])


def test_a_terminal_shows_a_state_in_color_and_in_plain_text(state):
    console = Console(file=io.StringIO(), width=100, color_system="truecolor", force_terminal=True)
    console.print(render_state(state))
    assert "48;2;170;170;170" in console.file.getvalue()
    plain = Console(file=io.StringIO(), width=100, color_system=None)
    plain.print(render_state(state))
    text = plain.file.getvalue()
    assert "working grid" in text
    assert "clipboard" in text
    assert "5*5*5*" in text, "stars follow the cells last selected"
    assert "\x1b" not in text


def test_an_episode_becomes_a_gif():
    frames = [Frame(GRID, GOAL, "start"), Frame(GOAL, GOAL, "solved", GOAL == 5)]
    with Image.open(io.BytesIO(animate(frames, cell_size=SIDE, frame_ms=100, last_ms=500))) as gif:
        assert gif.n_frames == 2
        assert gif.info["loop"] == 0
        durations = []
        for frame in range(2):
            gif.seek(frame)
            durations.append(gif.info["duration"])
    assert durations == [100, 500]


@pytest.mark.parametrize("kind", BLIND)
def test_the_safe_colors_stay_apart_without_some_cones(kind):
    assert nearest(SAFE_COLORS, BLIND[kind]) > 28
    assert nearest(SAFE_COLORS, BLIND[kind]) > 1.5 * nearest(ARC_COLORS, BLIND[kind])


def nearest(palette, matrix):
    """The least distance of two colors, CIE 1976, as somebody sees them."""
    shares = np.array([rgb(color) for color in palette]) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.array(matrix).T, 0, 1)
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
    )
    x = seen @ to_xyz.T / np.array([0.95047, 1, 1.08883])
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    lab = np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)
    distances = np.linalg.norm(lab[:, None] - lab[None], axis=-1)
    return distances[np.triu_indices(len(palette), 1)].min()
