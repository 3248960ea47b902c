"""What the commands of ``jaxarc traces`` take in common."""

import sys
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from jaxarc.experts import ActionFormat, Expert
from jaxarc.experts.expert import ACTION_FORMATS, EXPERTS, find_expert
from jaxarc.experts.traces import BatchExpert, ExpertSpec
from jaxarc.experts.traces.graph import PAIR_CHOICES, PairChoice

DEFAULT_EXPERT: Final = "painter"
DEFAULT_FORMAT: Final = "bbox"

DatasetArgument = Annotated[str, typer.Argument(help="Name of a dataset, or path of a file or folder of ARC JSON.")]
ExpertOption = Annotated[
    str, typer.Option(help=f"{', '.join(EXPERTS)}, or module:attribute of your own.", metavar="EXPERT")
]
FormatOption = Annotated[str, typer.Option(help=f"How actions select cells: {', '.join(ACTION_FORMATS)}.")]
PairsOption = Annotated[str, typer.Option(help=f"Which pairs of each task: {', '.join(PAIR_CHOICES)}.")]
CacheOption = Annotated[
    Path | None, typer.Option(help="Folder of the recorded traces; in the user's cache folder by default.")
]


def action_format_of(word: str) -> ActionFormat:
    """Return an action format, or refuse another word."""
    if word not in ACTION_FORMATS:
        raise typer.BadParameter(f"one of {', '.join(ACTION_FORMATS)}, got {word!r}", param_hint="--action-format")
    return cast(ActionFormat, word)


def pairs_of(word: str) -> PairChoice:
    """Return a choice of pairs, or refuse another word."""
    if word not in PAIR_CHOICES:
        raise typer.BadParameter(f"one of {', '.join(PAIR_CHOICES)}, got {word!r}", param_hint="--pairs")
    return cast(PairChoice, word)


def load_expert(name: str) -> Expert | BatchExpert:
    """Return an expert by name; modules are looked for in the working directory too, behind what is installed."""
    if ":" in name and (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    return find_expert(name)


def find_expert_spec(expert: str, action_format: str) -> ExpertSpec:
    """Return the spec of an expert in a format; ``human`` and others that were imported have no settings."""
    if expert in EXPERTS or ":" in expert:
        return ExpertSpec.of(load_expert(expert), action_format_of(action_format))
    return ExpertSpec(expert, 1, "", action_format_of(action_format))


def lasting_name(dataset: str) -> str:
    """Return a name of a dataset that means the same in another working directory."""
    path = Path(dataset)
    return str(path.resolve()) if path.exists() else dataset
