"""Show files from the top of the repository as pages of the site, and link its notebook once the address is known."""

from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

COLAB: Final = "https://colab.research.google.com/github/{}/blob/main/examples/first_steps.ipynb"
PAGES: Final = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the pages, with links as seen from the folder of the pages; mkdocs calls it before it reads them."""
    root = Path(config.config_file_path).parent
    for page, source in PAGES.items():
        text = (root / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Link the notebook below the heading of the first page; mkdocs calls it for each."""
    _, on_github, name = (config.repo_url or "").partition("github.com/")
    if page.file.src_uri != "index.md" or not on_github:
        return markdown
    heading, rest = markdown.split("\n", 1)
    return f"{heading}\n\n[Try it in Colab]({COLAB.format(name.strip('/'))})\n{rest}"
