"""What ``jaxarc play`` and ``jaxarc watch`` share: a page on this machine, and a browser that opens it."""

import contextlib
import importlib.util
import webbrowser
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

if TYPE_CHECKING:
    from jaxarc.play.local_site import LocalSite

PortOption = Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 takes one that is free.")]
OpenOption = Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")]

_LIBRARIES: Final = ("starlette", "uvicorn")


def require_play_extra() -> None:
    """Refuse to go on where the libraries for local pages are not installed, before anything is loaded."""
    missing = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise typer.BadParameter(
            f"local pages need {' and '.join(missing)}, not installed here: pip install 'jaxarc[play]'"
        )


def serve(site: "LocalSite", opens: bool, console: Console) -> None:
    """Serve until Ctrl-C, which is how such a command ends well."""
    console.print(site.url, highlight=False, markup=False, soft_wrap=True)
    console.print("Open it in a browser on this machine; Ctrl-C ends it.", highlight=False)
    if opens:
        # The command line of a browser can be read by other users: the address on it leads in once only.
        webbrowser.open(site.entrance)
    with contextlib.suppress(KeyboardInterrupt):
        site.run()
