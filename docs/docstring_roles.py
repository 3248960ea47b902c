"""Turn the roles of docstrings, such as :func:`~jaxarc.make`, into code that links to the API pages."""

import re
from typing import Any

_ROLE = re.compile(r":(?:func|class|mod|meth|attr|data|obj):<code>(~?)([\w.]+)</code>")


def on_page_content(html: str, **_: Any) -> str:
    """Replace the roles in the text of a page; mkdocs calls it for each."""
    return _ROLE.sub(_linked, html)


def _linked(role: re.Match[str]) -> str:
    is_short, name = role.groups()
    shown = name.rsplit(".", 1)[-1] if is_short else name
    return f'<autoref identifier="{name}" optional><code>{shown}</code></autoref>'
