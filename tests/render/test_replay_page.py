"""The replay page: what is in the file, and how it behaves in a real browser."""

import base64
import json
import re
import zlib

import numpy as np
import pytest
from replay_episodes import FLIP, painted, small_page

from jaxarc import constants as c
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
    assert page.evaluate("document.activeElement.dataset.place") == "2", "the focus follows"
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
    unnamed = """[...document.querySelectorAll('button, input, select, canvas')].filter(one =>
      !one.closest("[hidden]") && !one.textContent.trim() && !one.getAttribute("aria-label")
      && !(one.labels && one.labels.length))
      .map(one => one.outerHTML)"""
    assert page.evaluate(unnamed) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_stand_out_from_their_ground(open_page, url, dark):
    page = opened(open_page(url, dark=dark))
    script = """() => { const of = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
      return ['ink', 'soft', 'solved', 'failed', 'accent'].flatMap(ink => ['ground', 'surface'].map(
        ground => [ink, of('--' + ink), of('--' + ground)])) }"""
    for name, ink, ground in page.evaluate(script):
        assert contrast(ink, ground) >= 4.5, f"{name}: {ink} on {ground}"


def contrast(one, other):
    def luminance(color):
        shares = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    dark, bright = sorted([luminance(one), luminance(other)])
    return (bright + 0.05) / (dark + 0.05)


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
    page.wait_for_selector('[data-place="0"]')


def test_the_page_allows_itself_alone():
    html = small_page().to_html()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"""(?:src|href)=(?!"#stage")""", html), "nothing is loaded"


def test_what_is_packed_is_what_was_played():
    page = ReplayPage("one")
    episode = painted([[2, 1, 0]], [2, 1])
    held = episode.clipboards.copy()
    held[2:, 0, :2] = [4, c.PADDING]
    page.add(FLIP, episode._replace(clipboards=held, invalid=np.array([False, True, False])))
    line, _, changes = unpacked(page)[1].partition(b"\n")
    facts = json.loads(line)
    assert facts["clipboards"] == [[2, ["4"]]]
    assert facts["invalid"] == [1]
    cells = np.frombuffer(changes, np.uint8).reshape(-1, *facts["shape"])
    grids = np.cumsum(cells, axis=0) % 11 - 1
    assert grids.shape == (5, 1, 3)
    np.testing.assert_array_equal(grids[0], episode.target[:1, :3])
    np.testing.assert_array_equal(grids[1:], episode.grids[:, :1, :3])


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
    with pytest.raises(ValueError, match="an episode of 3 actions has 3 rewards and flags and 4 grids"):
        ReplayPage("one").add(FLIP, episode._replace(rewards=episode.rewards[1:]))
    with pytest.raises(ValueError, match="must be finite"):
        ReplayPage("one").add(FLIP, episode._replace(rewards=episode.rewards + np.nan))
    with pytest.raises(ValueError, match="add at least one"):
        ReplayPage("none").to_html()


def test_a_thousand_long_episodes_stay_small():
    rng, page = np.random.default_rng(0), ReplayPage("many")
    grids = np.full((101, 30, 30), 0, np.int8)
    for step in range(1, 101):  # every action paints a box of the full canvas
        (top, bottom), (left, right) = np.sort(rng.integers(0, 30, (2, 2)), axis=1)
        grids[step] = grids[step - 1]
        grids[step, top : bottom + 1, left : right + 1] = rng.integers(10)
    episode = painted([[0] * 3] * 3, [1] * 9)._replace(
        actions=[(1, 0, 0, 29, 29)] * 100,
        grids=grids,
        clipboards=np.full_like(grids, c.PADDING),
        target=grids[-1],
        rewards=rng.normal(size=100),
        similarities=rng.uniform(size=101),
        invalid=np.zeros(100, bool),
    )
    for _ in range(20):
        page.add(FLIP, episode)
    one, many = len(_page_of(FLIP, episode)), len(page.to_html())
    assert one + (many - one) / 19 * 999 < 20 * 2**20


def _page_of(task, episode):
    page = ReplayPage("one")
    page.add(task, episode)
    return page.to_html()
