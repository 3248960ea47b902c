"""Evaluate agents: by the rules of ARC on answers they never see, and on every pair while they train."""

from jaxarc.config import EvaluationConfig
from jaxarc.datasets.training_pairs import one_task_per_pair, one_task_per_test
from jaxarc.evaluation.agent import (
    Agent,
    AgentMismatchError,
    EpisodeSpec,
    RecordedAgent,
    RecordingError,
    SubmitPolicy,
    read_recordings,
)
from jaxarc.evaluation.evaluate import Evaluation, evaluate
from jaxarc.evaluation.solve_rate import TaskResults, play_every_task
from jaxarc.evaluation.solver import Solver, evaluate_solver
from jaxarc.evaluation.submission import (
    Score,
    Submission,
    SubmissionError,
    majority_vote,
    read_submission,
    score_submission,
    write_submission,
)
from jaxarc.evaluation.task_rows import TaskRow, best_first, rows_of_submission, write_task_rows

__all__ = [
    "Agent",
    "AgentMismatchError",
    "EpisodeSpec",
    "Evaluation",
    "EvaluationConfig",
    "RecordedAgent",
    "RecordingError",
    "Score",
    "Solver",
    "Submission",
    "SubmissionError",
    "SubmitPolicy",
    "TaskResults",
    "TaskRow",
    "best_first",
    "evaluate",
    "evaluate_solver",
    "majority_vote",
    "one_task_per_pair",
    "one_task_per_test",
    "play_every_task",
    "read_recordings",
    "read_submission",
    "rows_of_submission",
    "score_submission",
    "write_submission",
    "write_task_rows",
]


def __dir__() -> list[str]:
    return sorted(__all__)
