"""Draw the picture of ``docs/replay.md``: the page of ``jaxarc replay`` in a real browser.

Run ``python docs/make_replay_picture.py PAGE EPISODE STEP`` with a file of ``jaxarc replay``; it needs Playwright and a
browser (``CHROMIUM`` names one).
"""

import sys
from pathlib import Path
from typing import Final

from measure_replay import DRAWN, start_browser
from playwright.sync_api import sync_playwright

OUT: Final = Path(__file__).parent / "images" / "replay.png"
SIZE: Final = {"width": 1440, "height": 860}

if __name__ == "__main__":
    file, episode, step = sys.argv[1:]
    with sync_playwright() as driver:
        page = start_browser(driver).new_page(viewport=SIZE)
        page.goto(f"{Path(file).absolute().as_uri()}#episode={episode}&step={step}")
        page.wait_for_selector(DRAWN)
        page.screenshot(path=OUT)
