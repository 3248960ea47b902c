"""``jaxarc play`` as people use it: a real server, a real browser."""

import http.client
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from local_pages import served
from page_checks import nameless, pale_texts
from run_command import run_command

from jaxarc.traces import replay as replay_module

pytest_plugins = ["browser"]

# What to do: color the left column as the top left cell is, and make a copy of it.
ONE = {
    "train": [
        {"input": [[3, 0, 0], [0, 0, 0], [0, 5, 0]], "output": [[3, 0, 0], [3, 0, 0], [3, 5, 0]]},
        {"input": [[1, 0], [0, 0]], "output": [[1, 0], [1, 0]]},
    ],
    "test": [{"input": [[2, 0], [0, 7]], "output": [[2, 0], [2, 7]]}],
}
TWO = {"train": [{"input": [[4, 4], [0, 4]], "output": [[4, 4, 4]]}], "test": [{"input": [[6]], "output": [[6]]}]}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    for name, task in (("one", ONE), ("two", TWO)):
        (folder / f"{name}.json").write_text(json.dumps(task))
    return folder


@pytest.fixture(scope="module")
def plays(tmp_path_factory):
    return tmp_path_factory.mktemp("plays")


@pytest.fixture(scope="module")
def url(data, plays):
    with served("play", data, "--output", plays) as address:
        yield address


@pytest.fixture
def page(open_page, url):
    return opened(open_page, url)


def opened(open_page, url, **looks):
    """Open the page on a fresh episode of the first pair."""
    page = open_page(url, **looks)
    go_to(page, "one", "Demonstration 1")
    return page


def go_to(page, task, pair):
    page.wait_for_selector(".cell")
    page.fill("#task", task)
    page.press("#task", "Enter")
    page.wait_for_function("task => document.title.startsWith(task)", arg=task)
    page.get_by_role("button", name=pair, exact=True).click()
    says(page, f"Task {task}, {pair.lower()}")
    assert page.locator("#moves li").count() == 0


def says(page, words):
    page.wait_for_function("words => document.querySelector('#message').textContent.includes(words)", arg=words)


def grid(page):
    rows = page.locator(".cells > div").all()
    return [[int(cell.get_attribute("data-color")) for cell in row.locator(".cell").all()] for row in rows]


def middle(page, row, column):
    box = page.locator(f"#cell-{row}-{column}").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page, start, end):
    page.mouse.move(*middle(page, *start))
    page.mouse.down()
    page.mouse.move(*middle(page, *end), steps=4)
    page.mouse.up()


def file_of(page, plays):
    """The file that the page names, with its only line."""
    path = page.inner_text("#file")
    assert path.startswith(str(plays))
    (line,) = Path(path).read_text().splitlines()
    return path, json.loads(line)


@pytest.fixture
def small_replay(monkeypatch):
    """Replay on a small canvas, few traces at once."""
    monkeypatch.setattr(replay_module, "_BATCH", {"point": 2, "bbox": 2, "mask": 2})
    monkeypatch.setattr(replay_module, "_SIDE", 5)


def test_a_task_is_solved_by_mouse_and_keys_and_its_trace_verifies(page, plays, small_replay):
    assert grid(page) == ONE["train"][0]["input"]
    assert page.locator("#examples .secret").count() == 1  # the output of the pair that is played
    page.get_by_role("radio", name="3, green").click()
    page.get_by_role("button", name="Paint").click()
    drag(page, (1, 0), (2, 0))
    says(page, "similarity 100 %")
    assert grid(page) == ONE["train"][0]["output"]
    assert page.locator("#moves li").all_inner_texts() == ["1. fill green, rows 1–2, column 0\n+0.212"]
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector("#ending.solved")
    assert "Solved in 2 actions. Return +10.20" in page.inner_text("#ending")
    path, line = file_of(page, plays)
    assert line["actions"] == [[3, 1, 0, 2, 0], [34]]
    assert (line["expert"], line["session"]["solved"], line["session"]["hints"]) == ("human", True, 0)
    result = run_command("traces", "verify", path)
    assert result.exit_code == 0, result.output


def test_every_tool_is_an_action(page):
    page.keyboard.press("7")
    page.keyboard.press("f")
    page.mouse.click(*middle(page, 1, 1))
    says(page, "Flood fill orange")
    assert grid(page) == [[3, 7, 7], [7, 7, 7], [7, 5, 7]]
    page.keyboard.press("m")
    drag(page, (0, 0), (0, 1))
    assert page.inner_text("#selected") == "2 cells"
    for key, words in (
        ("c", "Copy"),
        ("h", "Flip left-right"),
        ("s", "Move down"),
        ("Delete", "Clear"),
        ("p", "Paste"),
    ):
        page.keyboard.press(key)
        says(page, words)
    assert grid(page) == [[0, 0, 7], [3, 7, 7], [7, 5, 7]]
    assert page.locator("#clipboard svg").get_attribute("aria-label") == "Clipboard, 1 by 2: green orange"
    page.keyboard.press("Control+a")
    page.keyboard.press("e")
    says(page, "Rotate clockwise")
    assert grid(page) == [[7, 3, 0], [5, 7, 0], [7, 7, 7]]
    page.keyboard.press("x")
    says(page, "Cut")
    page.keyboard.press("g")
    page.keyboard.type("2")
    page.keyboard.press("Tab")
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    says(page, "Resize to 2 × 4")
    assert grid(page) == [[0] * 4] * 2
    page.keyboard.press("o")
    says(page, "Copy input")
    assert grid(page) == ONE["train"][0]["input"]


def test_moves_that_come_fast_follow_one_another(page):
    page.mouse.click(*middle(page, 0, 0))
    for key in "ssd":
        page.keyboard.press(key)
    page.wait_for_selector("#moves li:nth-child(3)")
    assert grid(page) == [[0, 0, 0], [0, 0, 0], [0, 3, 0]]


def test_shift_adds_to_a_selection_and_ctrl_takes_away(page):
    page.mouse.click(*middle(page, 0, 0))
    page.keyboard.down("Shift")
    drag(page, (2, 0), (2, 2))
    page.keyboard.up("Shift")
    assert page.inner_text("#selected") == "4 cells"
    page.keyboard.down("Control")
    page.mouse.click(*middle(page, 2, 1))
    page.keyboard.up("Control")
    assert page.inner_text("#selected") == "3 cells"
    page.keyboard.press("8")
    page.keyboard.press("Space")
    says(page, "Fill light blue, 3 cells in rows 0–2, columns 0–2")


def test_undo_goes_back_and_redo_forth_and_the_file_keeps_both(page, plays):
    page.keyboard.press("b")
    for column in (1, 2):
        page.mouse.click(*middle(page, 0, column))
        says(page, f"Fill blue, row 0, column {column}")
    page.keyboard.press("Control+z")
    says(page, "Undo: 1 of 2")
    assert grid(page)[0] == [3, 1, 0]
    assert page.locator("#moves .undone").count() == 1
    page.keyboard.press("y")
    says(page, "Redo: 2 of 2")
    page.keyboard.press("Shift+R")
    says(page, "Reset: 0 of 2")
    assert grid(page) == ONE["train"][0]["input"]
    page.locator("#moves button").first.click()
    says(page, "1 of 2")
    _, line = file_of(page, plays)
    assert line["actions"] == [[1, 0, 1]]
    kinds = [(event[1], event[2]) for event in line["session"]["events"]]
    assert kinds == [
        ("act", [1, 0, 1]),
        ("act", [1, 0, 2]),
        ("rewind", [1]),
        ("rewind", [2]),
        ("rewind", [0]),
        ("rewind", [1]),
    ]


def test_a_hint_is_shown_can_be_done_and_counts_as_help(page, plays, small_replay):
    for _ in range(2):
        page.keyboard.press("i")
        page.wait_for_selector("#hint:visible")
        assert page.inner_text("#hint").startswith("From the answer:")
        page.keyboard.press("Shift+I")
        says(page, "Done as hinted")
    page.wait_for_selector("#ending.solved")
    path, line = file_of(page, plays)
    assert (line["expert"], line["session"]["hints"]) == ("human-with-hints", 2)
    assert run_command("traces", "verify", path).exit_code == 0


def test_a_test_pair_tells_nothing_before_the_submit_and_a_wrong_one_can_be_undone(page, plays):
    go_to(page, "one", "Test 1")
    assert page.inner_text("#similarity") == "hidden in a test"
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector("#ending.failed")
    page.keyboard.press("b")
    page.mouse.click(*middle(page, 1, 0))
    says(page, "the episode is over")
    page.locator("#ending button").click()
    says(page, "Undo: 0 of 1")
    page.keyboard.press("2")
    page.mouse.click(*middle(page, 1, 0))
    says(page, "Fill red, row 1, column 0: reward \N{MINUS SIGN}0.01.")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector("#ending.solved")
    _, line = file_of(page, plays)
    assert (line["split"], line["actions"]) == ("test", [[2, 1, 0], [34]])


def test_everything_works_by_keys_alone(page):
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowDown")  # comes to the grid
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "row 2, column 0: black"
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    says(page, "Fill green, rows 1–2, column 0")
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("]")
    says(page, "demonstration 2")
    page.keyboard.press("n")
    says(page, "Task two")
    page.keyboard.press("/")
    page.keyboard.type("one")
    page.keyboard.press("Enter")
    says(page, "Task one")


def is_on_the_grid(page):
    return page.evaluate("document.activeElement.matches('.cell')")


def test_the_task_box_gives_the_keyboard_back_to_the_grid(page):
    for task in ("two", "one", "one"):  # the last one is there already
        page.keyboard.press("/")
        page.keyboard.type(task)
        page.keyboard.press("Enter")
        says(page, f"Task {task}")
        page.wait_for_function("() => document.activeElement.matches('.cell')")
    page.keyboard.press("/")
    page.keyboard.type("nonsense")
    page.keyboard.press("Escape")
    assert (page.input_value("#task"), is_on_the_grid(page)) == ("one", True)
    page.get_by_role("button", name="Next task").press("Enter")
    says(page, "Task two")
    assert not is_on_the_grid(page), "the button can be pressed once more"


def test_the_task_box_searches_all_datasets_and_finds_the_way_back(page):
    page.fill("#task", "0934a4d8")
    page.press("#task", "Enter")
    page.wait_for_function("() => document.title.startsWith('0934a4d8')")
    assert page.inner_text("#task-place").endswith("of 400, arc-agi-1/evaluation")
    page.wait_for_selector("#task-ids option[value='00576224']", state="attached")
    go_to(page, "one", "Demonstration 1")


def test_a_newcomer_reads_what_to_do_until_there_is_an_episode(open_page, data, tmp_path):
    with served("play", data, "--output", tmp_path) as address:
        page = open_page(address, phone=True)
        page.wait_for_selector("#welcome:visible")
        says(page, "Drag over cells.")
        assert "Shift" not in page.inner_text("#message")
        page.get_by_role("button", name="Paint").tap()
        page.locator("#cell-0-1").tap()
        says(page, "Fill blue")
        page.reload()
        page.wait_for_selector("#moves li")
        assert page.locator("#welcome").is_hidden()
        page.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_control_has_a_name_and_every_text_stands_out(open_page, url, dark):
    page = opened(open_page, url, dark=dark)
    page.keyboard.press("b")
    for column in (0, 1):
        page.mouse.click(*middle(page, 0, column))
    page.wait_for_selector("#moves li:nth-child(2)")
    page.keyboard.press("z")
    page.keyboard.press("i")
    page.wait_for_selector("#hint button")
    assert nameless(page) == []
    assert pale_texts(page) == []
    page.click("#open-help")
    assert nameless(page) == []
    assert pale_texts(page) == []
    page.check("#safe-colors")
    assert page.evaluate("getComputedStyle(document.querySelector('#cell-0-0')).backgroundColor") == "rgb(59, 95, 219)"


def test_a_task_that_is_not_there_is_reported_with_near_ones(page):
    page.fill("#task", "ona")
    page.press("#task", "Enter")
    says(page, "did you mean 'one'?")
    assert page.locator("#moves li").count() == 0, "the episode before it goes on as it was"


def test_a_second_tab_does_not_act_on_a_task_that_was_left(open_page, url):
    first, second = opened(open_page, url), opened(open_page, url)
    first.keyboard.press("b")
    first.mouse.click(*middle(first, 0, 1))
    says(first, "reload the page")
    assert second.locator("#moves li").count() == 0


def test_nothing_is_lost_when_the_page_is_closed(open_page, url):
    page = opened(open_page, url)
    page.keyboard.press("b")
    page.mouse.click(*middle(page, 0, 1))
    says(page, "Fill blue")
    page.close()
    again = open_page(url, phone=True)
    again.wait_for_selector("#moves li")
    assert grid(again)[0] == [3, 1, 0]
    assert again.evaluate("window.scrollY") == 0  # the list of actions does not draw the page to itself


def test_a_finger_paints_on_a_phone(open_page, url):
    page = opened(open_page, url, phone=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Paint").tap()
    page.get_by_role("radio", name="6, magenta").tap()
    page.touchscreen.tap(*middle(page, 2, 2))
    says(page, "Fill magenta, row 2, column 2")
    assert page.get_by_role("button", name="Submit").is_visible()


@pytest.mark.parametrize(("form", "filled"), [("bbox", [[3, 1, 0, 2, 0]]), ("point", [[3, 1, 0], [3, 2, 0]])])
def test_other_action_formats_play_too(page, plays, small_replay, form, filled):
    page.select_option("#format", form)
    says(page, "Task one")
    page.keyboard.press("3")
    page.keyboard.press("b")
    drag(page, (1, 0), (2, 0))
    says(page, "similarity 100 %")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector("#ending.solved")
    path, line = file_of(page, plays)
    assert line["actions"][:-1] == filled
    assert run_command("traces", "verify", path).exit_code == 0
    page.select_option("#format", "mask")
    says(page, "Task one")


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("act", b"not json", "not JSON"),
        ("act", b"[1]", "not a JSON object"),
        ("act", b'{"action": []}', "a list of whole numbers"),
        ("act", b'{"action": [1.5]}', "a list of whole numbers"),
        ("rewind", b'{"episode": "1", "to": true}', "'to' must be of type int"),
        ("go", b'{"task": "one", "split": "no", "pair": 0}', "'split' is train or test"),
        ("go", b'{"task": "one", "split": "train", "pair": 0, "format": "cells"}', "'format' point, bbox or mask"),
    ],
)
def test_a_request_that_is_no_request_is_refused_with_the_reason(page, url, name, body, reason):
    port = urlsplit(url).port
    headers = {"Content-Type": "application/json", "Origin": f"http://127.0.0.1:{port}"}
    if name == "rewind":
        episode = page.evaluate(
            "() => fetch('game').then((answer) => answer.json()).then((game) => game.board.episode)"
        )
        body = body.replace(b"1", episode.encode())
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", urlsplit(url).path + name, body, headers)
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    assert (answer.status, reason in told["error"]) == (400, True), told


def test_an_episode_goes_on_from_its_file(page, open_page, plays, tmp_path):
    page.keyboard.press("b")
    page.mouse.click(*middle(page, 0, 1))
    says(page, "Fill blue")
    path, _ = file_of(page, plays)
    with served("play", path, "--output", tmp_path) as address:
        again = open_page(address)
        again.wait_for_selector("#moves li")
        assert again.inner_text("#moves li").startswith("1. fill blue")
        assert grid(again)[0] == [3, 1, 0]
        assert again.input_value("#task") == "one"
        again.close()
