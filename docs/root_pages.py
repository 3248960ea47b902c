"""Show the changelog and the contributor's guide, which stand at the top of the repository, as pages of the site."""

from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

PAGES: Final = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the pages, with links as seen from the folder of the pages; mkdocs calls it before it reads them."""
    root = Path(config.config_file_path).parent
    for page, source in PAGES.items():
        text = (root / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text.replace("](docs/", "](")))
    return files
