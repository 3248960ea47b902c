"""The tasks that a person plays, one episode at a time."""

import random
from pathlib import Path
from typing import Any, Final, Literal, get_args

from jaxarc.datasets import TaskSet
from jaxarc.experts import ActionFormat
from jaxarc.experts.host_canvas import FULL_CANVAS
from jaxarc.experts.traces import PairId
from jaxarc.play.episode import Episode
from jaxarc.play.session import Session

Direction = Literal["next", "previous", "random"]
DIRECTIONS: Final = get_args(Direction)


class StaleEpisodeError(ValueError):
    """Something is asked for in an episode that was left."""


class Game:
    """Some tasks, and the episode that is played now."""

    def __init__(self, tasks: TaskSet, dataset: str, place: PairId, action_format: ActionFormat, folder: Path):
        """Compile the environment, and begin.

        Args:
            tasks: what can be played.
            dataset: by which name others load them.
            place: where to begin.
            action_format: how actions select cells.
            folder: gets a file for each episode in which something was done.

        Raises:
            UnknownTaskError, WrongMoveError: there is no such task, or it has no such pair.
        """
        self.tasks, self.dataset, self.folder = tasks, dataset, folder
        self._sessions: dict[ActionFormat, Session] = {}
        self._count = 0
        self.start(place, action_format)

    def start(self, place: PairId, action_format: ActionFormat | None = None) -> None:
        """Begin an episode on a pair.

        Args:
            place: of the pair.
            action_format: how actions select cells; as before when left out. The first time, it is compiled for.

        Raises:
            UnknownTaskError, WrongMoveError: there is no such task, or it has no such pair.
        """
        form = self.action_format if action_format is None else action_format
        if form not in self._sessions:
            self._sessions[form] = Session(self.tasks, form)
        self.episode = Episode(str(self._count + 1), self._sessions[form], place, self.dataset, self.folder)
        self.action_format: ActionFormat = form
        self._count += 1

    def go(self, direction: Direction) -> None:
        """Begin an episode on the first pair of another task, of the split that is played now."""
        here, count = self.tasks.index_of(self.episode.place.task_id), len(self.tasks)
        step = {"next": 1, "previous": -1, "random": random.randrange(1, max(count, 2))}[direction]
        self.start(PairId(self.tasks.task_ids[(here + step) % count], self.episode.place.split, 0))

    def current(self, name: object) -> Episode:
        """Return the episode of this name.

        Raises:
            StaleEpisodeError: it was left.
        """
        if name != self.episode.name:
            raise StaleEpisodeError("another pair was opened meanwhile, in another tab perhaps; reload the page")
        return self.episode

    def puzzle(self) -> dict[str, Any]:
        """Return what the page shows of the task, for JSON; the output of the pair that is played is left out."""
        place = self.episode.place
        task = self.tasks.raw_task(place.task_id)
        is_played = lambda index: place.split == "train" and index == place.pair_index
        return {
            "dataset": self.dataset,
            "task": place.task_id,
            "title": " – ".join(filter(None, (task.title, task.concept))),
            "number": self.tasks.index_of(place.task_id) + 1,
            "count": len(self.tasks),
            "split": place.split,
            "pair": place.pair_index,
            "pairs": {"train": len(task.train), "test": len(task.test)},
            "demonstrations": [
                {"input": source.tolist(), "output": None if is_played(index) else output.tolist()}
                for index, (source, output) in enumerate(task.train)
            ],
            "input": self.episode.pair.input.tolist(),
            "format": self.action_format,
            "canvas": FULL_CANVAS,
        }
