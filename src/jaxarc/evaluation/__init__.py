"""How well an agent plays: by the rules of ARC on answers it never sees, and on every pair while it trains."""

from jaxarc.config.evaluation import EvaluationConfig
from jaxarc.evaluation.agent import Agent, AgentMismatchError, EpisodeSpec
from jaxarc.evaluation.evaluate import Evaluation, evaluate
from jaxarc.evaluation.players import AnswerPredictingAgent, EditAgent, SubmitPolicy
from jaxarc.evaluation.recording import RecordedAgent, RecordingError, read_action_counts, read_recordings
from jaxarc.evaluation.score import Score, score_submission
from jaxarc.evaluation.searching import SearchAgent
from jaxarc.evaluation.single_pairs import one_task_per_pair, one_task_per_test
from jaxarc.evaluation.solve_rate import BatchPolicy, TaskResults, play_every_task
from jaxarc.evaluation.submission import Submission, SubmissionError, read_submission, write_submission
from jaxarc.evaluation.task_rows import TaskRow, best_first, write_task_rows
from jaxarc.evaluation.votes import majority_vote

__all__ = [
    "Agent",
    "AgentMismatchError",
    "AnswerPredictingAgent",
    "BatchPolicy",
    "EditAgent",
    "EpisodeSpec",
    "Evaluation",
    "EvaluationConfig",
    "RecordedAgent",
    "RecordingError",
    "Score",
    "SearchAgent",
    "Submission",
    "SubmissionError",
    "SubmitPolicy",
    "TaskResults",
    "TaskRow",
    "best_first",
    "evaluate",
    "majority_vote",
    "one_task_per_pair",
    "one_task_per_test",
    "play_every_task",
    "read_action_counts",
    "read_recordings",
    "read_submission",
    "score_submission",
    "write_submission",
    "write_task_rows",
]
