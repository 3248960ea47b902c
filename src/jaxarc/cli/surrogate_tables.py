"""How well a surrogate does, as tables on a terminal and as a picture."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from jaxarc.envs.operations.table import get_operation_name
from jaxarc.training import RunFolder
from jaxarc.training.surrogates.agreement import Agreement
from jaxarc.training.surrogates.dynamics import OpenLoopError, StepAccuracy
from jaxarc.training.surrogates.evaluate import EvalResult, SurrogateEvaluation


def show_evaluation(evaluation: SurrogateEvaluation, folder: RunFolder, console: Console) -> None:
    """Print what was measured, and draw the calibration into the run folder."""
    if evaluation.agreement is not None:
        console.print(_agreement(evaluation.agreement))
        console.print(_calibration(evaluation.agreement))
        _draw_calibration(evaluation.agreement, folder)
    if evaluation.steps is not None:
        console.print(_steps(evaluation.steps))
    if evaluation.open_loop_errors:
        console.print(_open_loop(evaluation.open_loop_errors))
    if evaluation.policies:
        console.print(_policies(evaluation.policies))
        if evaluation.num_left_out:
            told = f"{evaluation.num_left_out:,} held-out pairs are left out, because a baseline learned from them."
            console.print(told, highlight=False)


def _agreement(agreement: Agreement) -> Table:
    table = Table("agreement with the expert", f"{agreement.num_examples:,} held-out examples", title_justify="left")
    table.columns[1].justify = "right"
    table.add_row("KL(expert || surrogate), nats", f"{agreement.kl:.4f}")
    table.add_row("first choice is one that the expert likes best", _percent(agreement.top1_agreement))
    table.add_row("such a one is among the first five", _percent(agreement.top5_agreement))
    if agreement.regret is not None:
        table.add_row("regret: worth lost by the first choice", _percent(agreement.regret, 2))
    table.add_row("calibration error", _percent(agreement.calibration_error, 2))
    return table


def _calibration(agreement: Agreement) -> Table:
    table = _with_numbers("candidates", "probability by the surrogate", "by the expert", first=False)
    for each in agreement.calibration:
        table.add_row(f"{each.size:,}", f"{each.predicted:.4f}", f"{each.expected:.4f}")
    return table


def _steps(steps: StepAccuracy) -> Table:
    table = _with_numbers("next grid, every cell right", "steps", "predicted", "by keeping the grid")
    table.add_row("all held-out steps", "", _percent(steps.exact_grid_accuracy), _percent(steps.kept_grid_accuracy))
    for operation, (count, exact, kept) in steps.by_operation.items():
        table.add_row(f"  {get_operation_name(operation)}", f"{count:,}", _percent(exact), _percent(kept))
    table.add_row("cells right", "", _percent(steps.cell_accuracy), "")
    table.add_row("reward, mean distance", "", f"{steps.reward_error:.4f}", "")
    return table


def _open_loop(errors: Sequence[OpenLoopError]) -> Table:
    """Tell of grids that are right in every cell, and for the last step also of keeping the first grid."""
    num_steps = len(errors[0].exact)
    columns = [str(step) for step in range(1, num_steps + 1)]
    table = _with_numbers("% right on own predictions,\nafter steps", *columns, "by\nkeeping", "% cells\nwrong")
    table.columns[0].no_wrap = True
    for each in errors:
        name = get_operation_name(each.operation)
        shares = (*each.exact, each.kept[-1], each.wrong_cells[-1])
        table.add_row(name, *[f"{100 * share:.0f}" for share in shares])
    return table


def _policies(policies: Mapping[str, EvalResult]) -> Table:
    table = _with_numbers("held-out pairs,\nanswer visible", "solved", "actions", "decisions/s", "learning\nseconds")
    table.columns[0].overflow = "fold"
    for name, each in policies.items():
        numbers = (each.mean_steps, each.decisions_per_second, each.learning_seconds)
        texts = ["-" if number is None else f"{number:,.1f}" for number in numbers]
        table.add_row(name, _percent(each.solved), *texts)
    return table


def _with_numbers(*columns: str, first: bool = True) -> Table:
    table = Table(*columns, title_justify="left")
    for column in table.columns[first:]:
        column.justify = "right"
    return table


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _draw_calibration(agreement: Agreement, folder: RunFolder) -> None:
    # Drawing takes half a second to import: whoever asks for help, or mistypes, does not wait for it.
    from jaxarc.render.figures import draw_calibration

    title = f"Calibration error {_percent(agreement.calibration_error, 2)}"
    draw_calibration(agreement.calibration, folder.calibration, title)
