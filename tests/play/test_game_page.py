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


def swipe(page, right, down):
    """Touch the middle of the frame, and lift the finger elsewhere."""
    page.evaluate(
        """([right, down]) => {
            const canvas = document.querySelector("canvas");
            const box = canvas.getBoundingClientRect();
            const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
            const at = (kind, x, y) => canvas.dispatchEvent(
                new PointerEvent(kind, { pointerType: "touch", clientX: x, clientY: y, bubbles: true }));
            at("pointerdown", x, y);
            at("pointerup", x + right, y + down);
        }""",
        [right, down],
    )


def test_a_phone_has_a_cross_of_arrows_swipes_levels_and_the_best_number(open_page, tmp_path):
    with served("play", "games/fog", "--output", tmp_path) as address:
        page = open_page(address, phone=True)
        says(page, "0 actions")
        assert page.locator("#count").inner_text() == "Level 1: 0 actions, best 8"
        assert page.locator("#levels li").count() == 8
        assert page.locator("#levels .now").count() == 1
        for name in ("up", "left", "right", "down"):
            page.get_by_role("button", name=name).tap()
        says(page, "4 actions")
        swipe(page, 60, 8)
        says(page, "5 actions")
        swipe(page, 3, 3)  # a tap, and this game has no clicks
        swipe(page, -8, -60)
        says(page, "6 actions")
        page.locator("canvas").tap()
        page.get_by_role("button", name="reset").tap()
        says(page, "7 actions")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        boxes = {name: page.get_by_role("button", name=name).bounding_box() for name in ("up", "left", "right", "down")}
    assert boxes["left"]["x"] < boxes["up"]["x"] == boxes["down"]["x"] < boxes["right"]["x"]
    assert boxes["up"]["y"] < boxes["left"]["y"] == boxes["right"]["y"] < boxes["down"]["y"]
    assert min(min(box["width"], box["height"]) for box in boxes.values()) >= 44
    (path,) = tmp_path.glob("fog-*.jsonl")
    found = [json.loads(line)["data"]["action_input"]["id"][-1] for line in path.read_text().splitlines()]
    assert found == ["T", "1", "3", "4", "2", "4", "1", "T"]


def test_a_game_of_clicks_speaks_of_no_arrows(open_page, tmp_path):
    with served("play", "games/flood", "--output", tmp_path) as address:
        page = open_page(address)
        says(page, "0 actions")
        assert page.locator("#help").inner_text().startswith("A click or a tap picks a cell, R restarts the level.")
        assert not page.locator("#cross").is_visible()
