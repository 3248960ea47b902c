"""The pages keep the rules of ``CONTRIBUTING.md`` that a program can judge."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USER_PAGES = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in (
            "adapters",
            "bring_your_own_agent",
            "command_line",
            "environment",
            "evaluation",
            "experiments",
            "experts",
            "faq",
            "guide",
            "index",
            "install",
            "operations",
            "other_packages",
            "performance",
            "play",
            "reliability",
            "scaling",
            "search",
            "surrogate",
            "tasks",
        )
    ),
]
MOST_WORDS = 30
BANNED = re.compile(
    r"\b(pays|paid|tells|told|mend(?:s|ed)?|dear(?:er|est)?|whoever|in turn|same bits)\b", re.IGNORECASE
)
RIDDLES = re.compile(r"\b(told|whoever|becomes of|of which nothing)\b", re.IGNORECASE)  # in code, comments and messages
FENCED = re.compile(r"^```.*?^```[^\n]*$", re.MULTILINE | re.DOTALL)
OTHER_PACKAGE = re.compile(r"pip install [\"' ]*jaxarc\b(?!-rl)[^\n]*")
NOT_PROSE = ("#", "|", "!", "<")
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")
SENTENCE_END = re.compile(r"(?<=[.!?:])[*\"')]*\s+(?=[A-Z0-9`*\"(])")


def sentences_of(text: str) -> list[str]:
    """Sentences of paragraphs and list items; code counts as one word, tables and headings not at all."""
    paragraphs = [""]
    for line in FENCED.sub("", text).splitlines():
        if not line.strip() or line.startswith(NOT_PROSE) or ITEM.match(line):
            paragraphs.append("")
        if line.strip() and not line.startswith(NOT_PROSE):
            paragraphs[-1] += f" {ITEM.sub('', line.strip(), count=1)}"
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "Code", paragraph)) for paragraph in paragraphs]
    return [sentence for paragraph in plain for sentence in SENTENCE_END.split(paragraph.strip()) if sentence]


def num_words(sentence: str) -> int:
    return len(re.findall(r"[\w'-]+(?:[.,]\d+)*", sentence))


@pytest.mark.parametrize("page", USER_PAGES)
def test_sentences_are_short_and_words_the_fields(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [sentence for sentence in sentences_of(text) if num_words(sentence) > MOST_WORDS] == []
    assert BANNED.findall(FENCED.sub("", text)) == []


def test_nothing_advises_to_install_the_other_package():
    warns_of_it = {"docs/faq.md", "CONTRIBUTING.md"}
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.py"), *ROOT.glob("src/**/*.py")]
    advice = {
        path.relative_to(ROOT).as_posix(): lines
        for path in files
        if (lines := OTHER_PACKAGE.findall(path.read_text(encoding="utf-8")))
    }
    assert advice.keys() - warns_of_it == set()


def test_code_speaks_as_the_field_does():
    files = [file for folder in ("src", "benchmarks", "examples") for file in (ROOT / folder).glob("**/*.*")]
    sources = [file for file in files if file.suffix in {".py", ".h", ".cc", ".js"} and ".venv" not in str(file)]
    texts = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in sources}
    found = {path: words for path, text in texts.items() if (words := RIDDLES.findall(text))}
    assert len(texts) > 300
    assert found == {}


def test_a_long_sentence_and_a_banned_word_are_found():
    long = " ".join(["word"] * (MOST_WORDS + 1))
    text = f"# T\n\nShort one. {long.capitalize()}.\n- item\n| a | {long} |\n```py\n{long}\n```\nIt tells you.\n"
    assert [num_words(sentence) > MOST_WORDS for sentence in sentences_of(text)] == [False, True, False, False]
    assert BANNED.findall(FENCED.sub("", text)) == ["tells"]
    assert RIDDLES.findall("Whoever is told what becomes of it is not toldest") == ["Whoever", "told", "becomes of"]
