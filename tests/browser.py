"""Pages in a real browser, for tests that say ``pytest_plugins = ["browser"]``.

``open_page(url)`` opens a page in headless Chromium. A test fails at its end if a page of it wrote an error to the
console, raised one, or asked for anything beyond this machine. Without a browser or Playwright these tests are skipped;
``CHROMIUM`` names another browser than the one on the path.
"""

import os
import shutil
from collections.abc import Iterator
from typing import Any, Final

import pytest

DESKTOP: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 390, "height": 844}
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # a request that would leave the machine fails, too
)
_AT_HOME: Final = ("file:", "data:", "blob:", "about:", "http://127.0.0.1:", "ws://127.0.0.1:")


class OpenPages:
    """Opens pages and remembers what went wrong in them."""

    def __init__(self, browser: Any):
        self.problems: list[str] = []  # a test that provokes some checks them and clears the list
        self._browser = browser
        self._contexts: list[Any] = []

    def __call__(self, url: str | None = None, *, dark: bool = False, phone: bool = False, **options: Any) -> Any:
        """Open a page of its own context and go to ``url``; ``options`` are those of Playwright's ``new_context``."""
        looks = {"color_scheme": "dark" if dark else "light", "viewport": PHONE if phone else DESKTOP}
        touch = {"has_touch": True, "is_mobile": True, "device_scale_factor": 2} if phone else {}
        context = self._browser.new_context(**{**looks, **touch, "reduced_motion": "reduce", **options})
        self._contexts.append(context)
        context.set_default_timeout(60_000)
        context.on("request", lambda request: self._require_home(request.url))
        context.on("console", self._note_console)
        context.on("weberror", lambda error: self.problems.append(f"uncaught: {error.error}"))
        page = context.new_page()
        page.on("websocket", lambda socket: self._require_home(socket.url))
        if url is not None:
            page.goto(url)
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()

    def _note_console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text} ({message.location.get('url', '')})")

    def _require_home(self, url: str) -> None:
        if not url.startswith(_AT_HOME):
            self.problems.append(f"asked for {url[:200]}, which is not on this machine")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium; closed after each file, because Playwright keeps an event loop running meanwhile."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright here; pip install playwright")
    path = find_browser()
    if path is None:
        pytest.skip(f"no browser here; install one of {', '.join(_NAMES)}, or name one in CHROMIUM")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=list(_FLAGS))
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[OpenPages]:
    pages = OpenPages(browser)
    yield pages
    pages.close()
    assert not pages.problems, "\n".join(pages.problems)


def find_browser() -> str | None:
    """Return the path of a browser that Playwright can drive."""
    chosen = os.environ.get("CHROMIUM")
    return chosen or next((path for name in _NAMES if (path := shutil.which(name))), None)
