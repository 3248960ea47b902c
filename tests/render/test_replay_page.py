"""The replay page: what is in the file, and how it behaves in a real browser."""

import base64
import json
import re
import zlib

import numpy as np
import pytest
from page_checks import nameless, pale_texts
from random_episodes import SIDE, random_episode
from replay_episodes import FLIP, painted, small_page

from jaxarc import constants as c
from jaxarc.render.actions import acts_on_cells, describe_action, selection_of
from jaxarc.render.replay_page import ReplayPage

pytest_plugins = ["browser"]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "replay.html"
    path.write_text(small_page().to_html())
    return path.as_uri()


@pytest.fixture
def page(open_page, url):
    return opened(open_page(url))


def opened(page):
    page.wait_for_selector(".act[aria-current=step]")
    return page


def at(page):
    return page.inner_text("#position")


def cell(page, canvas, row, column, rows, columns):
    """The color in the middle of a cell of a canvas."""
    script = """([id, x, y]) => {
      const one = document.getElementById(id);
      const pen = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
      pen.drawImage(one, -Math.round(x * one.width), -Math.round(y * one.height));
      return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    }"""
    return tuple(page.evaluate(script, [canvas, (column + 0.4) / columns, (row + 0.4) / rows]))


def test_it_opens_on_the_first_episode_and_names_everything(page):
    assert page.inner_text("h1") == "A <script>alert(1)</script> & more"
    assert page.inner_text("#about") == "tasks: </script> two"
    assert page.inner_text("#task") == "flip · mirror it"
    assert page.inner_text("#badge") == "solved"
    assert at(page) == "0 / 3"
    assert [row.strip() for row in page.locator(".what").all_inner_texts()] == [
        "start",
        "fill red",
        "fill blue",
        "submit",
    ]
    assert page.locator("#demonstrations canvas").count() == 2
    assert page.get_attribute("#working", "aria-label") == "Working grid, 1 by 3 cells: 3 black"
    assert page.get_attribute("#target", "aria-label") == "Target, 1 by 3 cells: 1 black, 1 blue, 1 red"


def test_keys_buttons_and_the_slider_scrub(page):
    page.keyboard.press("ArrowRight")
    assert at(page) == "1 / 3"
    assert page.inner_text("#action").startswith("Step 1 of 3: fill red, row 0, column 0; reward +0.323")
    assert page.inner_text("#wrong") == "1 cell"
    page.keyboard.press("End")
    assert at(page) == "3 / 3"
    page.click("#back")
    assert at(page) == "2 / 3"
    page.keyboard.press("Home")
    page.locator("#slider").fill("2")
    assert at(page) == "2 / 3"
    assert page.inner_text("#similarity-now") == "100 %"
    page.locator("#slider").press("ArrowLeft")
    assert at(page) == "1 / 3", "the slider's own keys move one step, not two"
    page.locator(".act").nth(3).click()
    assert at(page) == "3 / 3"


def test_the_grids_show_what_is_and_what_is_wrong(page):
    page.keyboard.press("ArrowRight")
    assert cell(page, "working", 0, 0, 1, 3) == (0xFF, 0x41, 0x36)
    assert cell(page, "target", 0, 1, 1, 3) == (0x00, 0x74, 0xD9)
    assert cell(page, "difference", 0, 1, 1, 3) == (0, 0, 0), "the upper left of a wrong cell is what it is"
    faint = cell(page, "difference", 0, 0, 1, 3)
    assert min(faint) > 200, "a cell that is right is faint"
    page.select_option("#palette", "safe")
    assert cell(page, "working", 0, 0, 1, 3) == (0xD0, 0x0A, 0x0F)


def test_playing_runs_to_the_end_and_stops(page):
    page.select_option("#speed", "32")
    page.keyboard.press("Space")
    page.wait_for_selector("#position:text-is('3 / 3')")
    page.wait_for_selector("#play[aria-label=Play]")
    assert at(page) == "3 / 3"


def test_the_list_filters_by_outcome_and_by_words(page):
    assert page.inner_text("#summary").startswith("4 episodes, 50.0 % solved")
    page.select_option("#outcome", "failed")
    assert page.locator(".episode").count() == 2
    page.locator("#search").fill("fill bob")
    assert page.locator(".episode .name").all_inner_texts() == ["<b>fill</b>"]
    page.locator(".episode").click()
    page.wait_for_selector("#badge:text-is('failed')")
    assert page.inner_text("#task") == "<b>fill</b>"
    assert page.locator("#demonstrations").is_hidden()
    page.locator("#search").fill("nothing of the kind")
    assert page.inner_text("#summary") == "No episode fits; change the filter."


def test_the_list_orders(page):
    page.select_option("#order", "long")
    assert page.locator(".episode .detail").first.inner_text().endswith("7 actions")
    page.select_option("#order", "far")
    assert page.locator(".episode .share").first.inner_text() == "33.3 %"


def test_the_keyboard_goes_through_the_list(page):
    page.keyboard.press("n")
    page.wait_for_selector("#player:has-text('episode 2 of 4')")
    page.locator(".episode[aria-current=true]").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("#player:has-text('episode 3 of 4')")
    assert page.evaluate("document.activeElement.dataset.episode") == "2", "the focus follows"
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.uncheck("#letters")
    page.click("#help form button")
    page.locator("h1").click()
    page.keyboard.press("n")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#player").startswith("episode 3 of 4")
    assert at(page) == "1 / 7"


def test_a_link_leads_to_a_step_and_the_address_follows(open_page, url):
    page = opened(open_page(f"{url}#episode=3&step=4"))
    assert at(page) == "4 / 7"
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**#episode=3&step=5")
    page.evaluate("location.hash = '#episode=2&step=99'")
    page.wait_for_selector("#position:text-is('3 / 3')")
    page.evaluate("location.hash = '#episode=what'")
    page.wait_for_selector("#player:has-text('episode 1 of 4')")


def test_dark_follows_the_system_and_the_choice(open_page, url):
    ground = "getComputedStyle(document.body).backgroundColor"
    page = opened(open_page(url, dark=True))
    assert page.evaluate(ground) == "rgb(19, 20, 22)"
    page.select_option("#theme", "light")
    assert page.evaluate(ground) == "rgb(246, 246, 244)"
    page.reload()
    assert opened(page).evaluate(ground) == "rgb(246, 246, 244)", "the choice is kept"


def test_a_phone_shows_it_without_scrolling_sideways(open_page, url):
    page = opened(open_page(url, phone=True))
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.tap("#forward")
    assert at(page) == "1 / 3"
    sides = page.evaluate(
        "[...document.querySelectorAll('.transport button')].map(b => b.getBoundingClientRect().height)"
    )
    assert min(sides) >= 44, "large enough for a finger"
    page.locator(".episode").nth(2).tap()
    page.wait_for_selector("#player:has-text('episode 3 of 4')")
    assert page.locator("#task").evaluate("task => task.getBoundingClientRect().top") >= 0, "it is in view again"
    assert page.evaluate("window.scrollY") < 400


def test_a_screen_reader_hears_each_step(page):
    assert page.get_attribute("#said", "aria-live") == "polite"
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#said").startswith("Step 1 of 3: fill red")
    assert page.get_attribute("#slider", "aria-valuetext") == page.inner_text("#said")
    assert nameless(page) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_stand_out_from_their_ground(open_page, url, dark):
    page = opened(open_page(url, dark=dark))
    page.click("#as-text summary")
    assert pale_texts(page) == []
    page.click("#open-help")
    assert pale_texts(page) == []


def test_pale_texts_and_controls_without_a_name_are_found(page):
    page.evaluate("document.querySelector('#task').style.color = '#999'")
    page.evaluate("document.querySelector('#play').removeAttribute('aria-label')")
    assert pale_texts(page) == ["2.63: flip · mirror it"]
    assert nameless(page) == ["button"]


def test_only_the_rows_in_view_are_in_the_page(open_page, tmp_path):
    many = ReplayPage("many")
    for _ in range(300):
        many.add(FLIP, painted([[2, 1, 0]], [2, 1]))
    path = tmp_path / "many.html"
    path.write_text(many.to_html())
    page = opened(open_page(f"{path.as_uri()}#episode=250"))
    assert page.locator(".episode").count() < 40
    assert page.locator(".episode[aria-current=true]").is_visible(), "the list scrolls to what a link names"
    page.locator("#list").evaluate("list => list.scrollTop = 0")
    page.wait_for_selector('[data-episode="0"]')


def test_the_page_allows_itself_alone():
    html = small_page().to_html()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"""(?:src|href)=(?!"#stage")""", html), "nothing is loaded"


@pytest.mark.parametrize("selection_format", ["point", "bbox", "mask"])
def test_the_page_shows_what_was_played_cell_by_cell(open_page, tmp_path, selection_format):
    replay = ReplayPage("random")
    played = [random_episode(seed, selection_format) for seed in range(8)]
    for episode in played:
        replay.add(FLIP, episode)
    path = tmp_path / "random.html"
    path.write_text(replay.to_html())
    page = opened(open_page(path.as_uri()))
    for place, episode in enumerate(played):
        shown = page.evaluate(UNPACK, place)
        height, width = shown["shape"]
        assert (episode.grids[:, height:] == c.PADDING).all()
        assert (episode.grids[:, :, width:] == c.PADDING).all()
        cut = np.s_[:height, :width]
        np.testing.assert_array_equal(np.reshape(shown["target"], (height, width)), episode.target[cut])
        for step, grid in enumerate(episode.grids):
            np.testing.assert_array_equal(np.reshape(shown["grids"][step], (height, width)), grid[cut])
            np.testing.assert_array_equal(held_at(shown, step), np.maximum(episode.clipboards[step], c.PADDING))
        for action, selection in zip(episode.actions, shown["selections"], strict=True):
            if acts_on_cells(action[0]):
                wanted = selection_of(action, selection_format, (height, width))
                np.testing.assert_array_equal(np.reshape(selection, (height, width)), wanted)
        assert shown["invalid"] == np.flatnonzero(episode.invalid).tolist()
        words = [describe_action(action, selection_format) for action in episode.actions]
        assert shown["words"] == [text.replace(", whole grid", "") for text in words]


UNPACK = """async (place) => {
  const episode = await loadEpisode(place), plain = (cells) => cells && Array.from(cells);
  const held = episode.grids.map((_, step) => clipboardAt(episode, step));
  return {
    shape: episode.shape,
    target: plain(episode.target.cells),
    grids: episode.grids.map((grid) => plain(grid.cells)),
    clipboards: held.map((grid) => grid && [grid.height, grid.width, plain(grid.cells)]),
    selections: episode.selections.map(plain),
    invalid: [...episode.invalid],
    words: episode.actions.map((action) => phraseOf(episode, action)),
  };
}"""


def held_at(shown, step):
    """The clipboard on the whole canvas."""
    canvas = np.full((SIDE, SIDE), c.PADDING)
    if shown["clipboards"][step]:
        height, width, cells = shown["clipboards"][step]
        canvas[:height, :width] = np.reshape(cells, (height, width))
    return canvas


def test_tasks_of_the_same_id_keep_their_own_demonstrations():
    page = ReplayPage("one")
    for task in (FLIP, FLIP._replace(title="another"), FLIP):
        page.add(task, painted([[2, 1, 0]], [2, 1]))
    titles = [json.loads(text)["title"] for text in unpacked(page) if text.startswith(b'{"id"')]
    assert titles == [FLIP.title, "another"]


def unpacked(page):
    text = re.search(r'id="packed">([^<]*)<', page.to_html())[1]
    return [zlib.decompress(base64.b64decode(line)) for line in text.split("\n")]


def test_parts_that_do_not_fit_are_refused():
    episode = painted([[2, 1, 0]], [2, 1])
    with pytest.raises(ValueError, match="3 actions"):
        ReplayPage("one").add(FLIP, episode._replace(rewards=episode.rewards[1:]))
    with pytest.raises(ValueError, match="finite"):
        ReplayPage("one").add(FLIP, episode._replace(rewards=episode.rewards + np.nan))
    with pytest.raises(ValueError, match="add at least one"):
        ReplayPage("none").to_html()


def test_a_thousand_long_episodes_of_noise_stay_below_20_megabytes():
    rng, page = np.random.default_rng(0), ReplayPage("many")
    actions, grids = [], np.full((101, 30, 30), 0, np.int8)
    for step in range(1, 101):  # every action paints half of the cells, any of them
        color, cells = int(rng.integers(10)), rng.uniform(size=(30, 30)) < 0.5
        actions.append((color, *np.argwhere(cells).ravel().tolist()))
        grids[step] = np.where(cells, color, grids[step - 1])
    episode = painted([[0] * 3] * 3, [1] * 9)._replace(
        selection_format="mask",
        actions=actions,
        grids=grids,
        clipboards=np.full_like(grids, c.PADDING),
        target=grids[-1],
        rewards=rng.normal(size=100),
        similarities=rng.uniform(size=101),
        invalid=np.zeros(100, bool),
    )
    page.add(FLIP, episode)
    one = len(page.to_html())
    page.add(FLIP, episode)
    assert one + (len(page.to_html()) - one) * 999 < 20e6
