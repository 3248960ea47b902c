"""The commands of the pages exist: their options, the settings that they change, targets of make, programs."""

import functools
import re
import shlex
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from jaxarc.cli.main import COMMANDS, LazyGroup, app, load_command
from jaxarc.cli.settings import read_experiment
from jaxarc.cli.train_command import expand

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```bash[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
ASSIGNMENT = re.compile(r"[A-Z_]+=")
FROM_ELSEWHERE = {"git", "pip", "xprof", "tensorboard"}
OF_READERS = {"my_program.py", "stoix/systems/ppo/anakin/ff_ppo.py", "cleanrl/cleanrl/ppo.py"}  # in their own clones
OF_ONES_OWN = re.compile(r"=\w+\.py:\w+$")  # a game, network or reward that stands in a reader's file
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def commands_of(text: str) -> list[list[str]]:
    """Words of every command in the bash blocks, comments, assignments and what is behind a pipe left out."""
    found = []
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words and (ASSIGNMENT.match(words[0]) or words[0] == "srun"):
                words = words[1:]
            stop = [place for place, word in enumerate(words) if word in {"|", ">", "&&", "&", ";"}]
            if words := words[: stop[0] if stop else None]:
                found.append(words)
    return found


def complaint_about(words: list[str]) -> str:
    """Say what is wrong with a command; nothing if nothing is."""
    program, *arguments = words
    program = program.rpartition("/")[2]
    if program == "make":
        wrong = [word for word in arguments if not ASSIGNMENT.match(word) and word not in TARGETS]
        return f"make has no target {wrong}" if wrong else ""
    if program.startswith("python"):
        file = next((word for word in arguments if word.endswith(".py")), None)
        is_there = file is None or file in OF_READERS or (ROOT / file).exists()
        return "" if is_there else f"there is no {file}"
    if program != "jaxarc":
        return "" if program in FROM_ELSEWHERE else f"{program} is unknown"
    return complaint_about_options(arguments) or complaint_about_settings(arguments)


def complaint_about_options(arguments: list[str]) -> str:
    """Look a command of ours up, and its options."""
    command, rest = get_command(app), list(arguments)
    while isinstance(command, TyperGroup):
        if not rest or rest[0].startswith("-"):
            break
        if isinstance(command, LazyGroup):
            command = load_command(rest.pop(0)) if rest[0] in COMMANDS else None
        else:
            command = command.commands.get(rest.pop(0))
        if command is None:
            return f"there is no command {arguments}"
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    wrong = [word for word in rest if word.startswith("-") and word.partition("=")[0] not in known | {"--help"}]
    return f"there is no option {wrong}" if wrong else ""


def complaint_about_settings(arguments: list[str]) -> str:
    """Compose the config that overrides of ``jaxarc train`` would give."""
    if arguments[:1] != ["train"] or "--config" in arguments or "--resume" in arguments:
        return ""
    before = zip(["", *arguments], arguments, strict=False)
    overrides = [
        word for option, word in before if "=" in word and option != "--slurm" and not OF_ONES_OWN.search(word)
    ]
    try:
        for chosen in list(expand(overrides))[:1] if "--multirun" in arguments else [overrides]:
            compose(tuple(chosen))
    except ValueError as error:
        return str(error)
    return ""


@functools.cache
def compose(overrides: tuple[str, ...]) -> object:
    return read_experiment(overrides)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_exists(page):
    wrong = {}
    for words in commands_of(page.read_text(encoding="utf-8")):
        if complaint := complaint_about(words):
            wrong[shlex.join(words)] = complaint
    assert wrong == {}


@pytest.mark.parametrize(
    "line",
    [
        "jaxarc evaluate NAME --no-such-option",
        "jaxarc tasks fetch",
        "make tea",
        "python docs/no_such.py",
        "A=1 solve",
        "jaxarc train schedule.learning_rat=1",
    ],
)
def test_a_wrong_command_is_found(line):
    (words,) = commands_of(f"```bash\n{line}   # a comment\n```\n")
    assert complaint_about(words)
