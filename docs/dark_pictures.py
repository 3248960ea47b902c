"""In dark mode the site shows a dark variant of a picture: of our drawings one made here, else ``NAME-dark.png``."""

import re
from typing import Any, Final

from mkdocs.structure.files import File, Files

DARK: Final = {  # colors of jaxarc.render.svg and of the flow picture -> theirs on a dark page
    "fill='#ffffff'/>\n": "fill='none'/>\n",  # the ground
    "#333333": "#dfe3ea",  # ink
    "#f3f3f3": "#2b303b",  # padding
    "#e4e6e3": "#353b47",  # right cells of a difference
    "#eef4fb": "#1b2b44",  # boxes of the flow picture
    "#eefaee": "#1a3323",
    "#fff6ea": "#3d2c17",
}
_IMAGE: Final = re.compile(r'<img ([^>]*)src="([^"]+)\.(svg|png)"([^>]*)>')


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add a dark variant of each drawing; mkdocs calls it before it reads the pages."""
    for file in [file for file in files if file.src_uri.endswith(".svg") and "logo" not in file.src_uri]:
        text = dark = file.content_string
        for light, replacement in DARK.items():
            dark = dark.replace(light, replacement)
        if dark != text:
            files.append(File.generated(config, f"{file.src_uri.removesuffix('.svg')}-dark.svg", content=dark))
    return files


def on_page_content(html: str, files: Files, **_: Any) -> str:
    """Show both variants where there are two; the theme hides one by the ends of their addresses."""
    known = {file.dest_uri for file in files}

    def both(image: re.Match[str]) -> str:
        before, path, kind, after = image.groups()
        if re.sub(r"^(\.\./)+", "", f"{path}-dark.{kind}") not in known:
            return image[0]
        return "".join(
            f'<img {before}src="{path}{end}"{after}>' for end in (f".{kind}#only-light", f"-dark.{kind}#only-dark")
        )

    return _IMAGE.sub(both, html)
