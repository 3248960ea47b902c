"""Draw the pages of ``jaxarc replay``, ``jaxarc play`` and ``jaxarc watch`` in a real browser, light and dark.

Run ``python docs/make_page_pictures.py RUN`` with a run of ``jaxarc train experiment=ladder_l2_small``; it
needs Playwright and a browser (``CHROMIUM`` names one). ``NAME-dark.png`` is what the site shows in dark mode.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from measure_replay import DRAWN, start_browser
from playwright.sync_api import Browser, Page, sync_playwright

FOLDER: Final = Path(__file__).parent / "images"
COMMAND: Final = (sys.executable, "-m", "jaxarc.cli.main")
TASK: Final = ("00d62c1b", "--pair", "train/1")


def main(run: str) -> None:
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = start_browser(driver)
        file = Path(folder) / "replay.html"
        subprocess.run([*COMMAND, "replay", run, "--output", str(file), "--most", "60"], check=True)
        draw(browser, "replay", f"{file.as_uri()}#episode=3&step=4", wait_for_replay)
        with served("play", *TASK, folder=folder) as address:
            draw(browser, "play", address, paint)
        with served("watch", run) as address:
            draw(browser, "watch", address, wait_for_episodes)


@contextmanager
def served(*arguments: str, folder: str = ".") -> Iterator[str]:
    """Serve a page from a working folder until the block ends, and yield its address."""
    command = [*COMMAND, *arguments, "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stdout is not None
        found = next(found for line in process.stdout if (found := re.search(r"http://\S+/", line)))
        yield found[0]
        process.terminate()


def draw(browser: Browser, name: str, address: str, prepare: Callable[[Page], None]) -> None:
    for scheme, end in (("light", ""), ("dark", "-dark")):
        page = browser.new_page(viewport={"width": 1440, "height": 860}, color_scheme=scheme, reduced_motion="reduce")
        page.goto(address)
        prepare(page)
        page.screenshot(path=FOLDER / f"{name}{end}.png")
        page.close()


def wait_for_replay(page: Page) -> None:
    page.wait_for_selector(DRAWN)


def paint(page: Page) -> None:
    """Fill the enclosed cell, unless an earlier page did."""
    page.wait_for_selector(".cell")
    page.evaluate("document.querySelector('#welcome').hidden = false")
    if not page.locator("#moves li").count():
        page.keyboard.press("4")
        page.keyboard.press("b")
        page.locator("#cell-4-6").click()
        page.wait_for_selector("#moves li")


def wait_for_episodes(page: Page) -> None:
    page.wait_for_selector("#episodes li", timeout=300_000)
    page.locator("#step").fill("3")


if __name__ == "__main__":
    main(sys.argv[1])
