"""``jaxarc play games/NAME`` and the page of a recording, in a real browser."""

import json

from local_pages import served
from run_command import run_command

pytest_plugins = ["browser"]


def says(page, words):
    page.wait_for_function("words => document.querySelector('#state').textContent.includes(words)", arg=words)


def drawn_colors(page):
    """How many colors the canvas shows; it is read once, because a browser warns of more."""
    return page.evaluate("""() => {
        const { data } = document.querySelector("canvas").getContext("2d").getImageData(0, 0, 512, 512);
        return new Set(new Uint32Array(data.buffer)).size;
    }""")


def test_a_game_is_played_by_keys_and_clicks_and_its_recording_shown(open_page, tmp_path):
    with served("play", "games/bridges", "--output", tmp_path) as address:
        page = open_page(address)
        says(page, "0 actions, score 0.0, 0 of 8 levels")
        page.keyboard.press("ArrowRight")  # takes the plank up
        says(page, "1 actions")
        box = page.locator("canvas").bounding_box()
        side = box["width"] / 5  # cells of the first level, whose three rows are in the middle
        page.mouse.click(box["x"] + 2.5 * side, box["y"] + box["height"] / 2 - side)  # water that is not beside
        says(page, "2 actions")
        page.keyboard.press("r")
        says(page, "3 actions, score 0.0")
        for key in ("ArrowRight", "ArrowRight"):
            page.keyboard.press(key)
        page.mouse.click(box["x"] + 3.5 * side, box["y"] + box["height"] / 2)
        page.get_by_role("button", name="right").click()
        page.keyboard.press("d")
        says(page, "1 of 8 levels")
    (path,) = tmp_path.glob("bridges-*.jsonl")
    lines = [json.loads(line)["data"] for line in path.read_text().splitlines()]
    assert [line["action_input"]["id"] for line in lines] == [
        *("RESET", "ACTION4", "ACTION6", "RESET", "ACTION4", "ACTION4", "ACTION6", "ACTION4", "ACTION4")
    ]
    html = tmp_path / "game.html"
    assert run_command("replay", path, "-o", html).exit_code == 0
    page = open_page(html.as_uri())
    says(page, "action 1 of 9: reset, 0 of 8 levels")
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    says(page, "action 9 of 9: right, 1 of 8 levels")
    page.get_by_role("button", name="Back").click()
    says(page, "action 9 of 9")  # its first frame: the level that was completed
    assert drawn_colors(page) == 5  # letterbox, floor, water, bridge and the player on the goal
