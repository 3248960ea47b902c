"""An episode that a person plays, without the page."""

import datetime
import json

import pytest

from jaxarc.datasets import TaskSet
from jaxarc.experts import InvalidActionError
from jaxarc.play.episode import HELPED, Episode, WrongMoveError, new_episode_file, read_human_episode
from jaxarc.play.play_site import PlayedTasks, StaleEpisodeError
from jaxarc.play.session import Session
from jaxarc.tasks import RawTask
from jaxarc.traces import PairId
from jaxarc.traces.trace_files import TraceFileError

TASKS = TaskSet(
    "two",
    (
        RawTask("one", (([[1, 0]], [[1, 1]]), ([[2]], [[3]])), (([[4, 0]], [[4, 4]]),)),
        RawTask("a/b c", (([[5, 5]], [[5]]),), (([[5]], [[5]]),)),
    ),
)
FIRST = PairId("one", "train", 0)


@pytest.fixture(scope="module")
def session():
    return Session(TASKS, "bbox")


@pytest.fixture
def start(session, tmp_path):
    return lambda place=FIRST, folder=tmp_path: Episode("1", session, place, "two", folder)


def test_going_back_gives_what_a_replay_of_the_remaining_actions_gives(start):
    actions = [(3, 0, 0, 0, 1), (33, 0, 0, 2, 2), (24, 0, 0, 1, 1), (1, 0, 1, 0, 1)]
    long, short = start(), start()
    for action in actions:
        long.act(action)
    for action in actions[:2]:
        short.act(action)
    long.rewind(2)
    same = ("grid", "clipboard", "selected", "similarity", "reward", "return", "steps", "ending", "in_force")
    assert {name: long.board()[name] for name in same} == {name: short.board()[name] for name in same}
    long.act((34, 0, 0, 0, 0))  # what was taken back is gone
    assert [move["name"] for move in long.board()["moves"]][2:] == ["submit"]


def test_rewards_are_those_of_the_environment(start):
    episode = start()
    assert (episode.board()["similarity"], episode.board()["reward"]) == (0.5, None)
    episode.act((1, 0, 1, 0, 1))
    assert episode.board()["reward"] == pytest.approx(0.49)
    episode.act((34, 0, 0, 0, 0))
    board = episode.board()
    assert (board["ending"], board["reward"]) == ("solved", pytest.approx(9.99))
    assert board["return"] == pytest.approx(10.48)


def test_a_test_pair_pays_for_its_submit_only(start):
    episode = start(PairId("one", "test", 0))
    episode.act((4, 0, 1, 0, 1))
    board = episode.board()
    assert (board["similarity"], board["reward"]) == (None, pytest.approx(-0.01))
    episode.act((34, 0, 0, 0, 0))
    assert episode.board()["ending"] == "solved"


def test_what_is_no_action_or_comes_too_late_is_refused_and_changes_nothing(start):
    episode = start()
    for action in [(1, 0, 0), (35, 0, 0, 0, 0), (1, 0, 0, 0, 30), (10**20, 0, 0, 0, 0)]:
        with pytest.raises(InvalidActionError):
            episode.act(action)
    for to in (-1, 1):
        with pytest.raises(WrongMoveError, match=r"go to 0\.\.0"):
            episode.rewind(to)
    assert (episode.board()["in_force"], episode.file) == (0, None)
    episode.act((34, 0, 0, 0, 0))
    for late in (lambda: episode.act((1, 0, 0, 0, 0)), episode.hint):
        with pytest.raises(WrongMoveError):
            late()


def test_hints_follow_what_the_player_does(start):
    episode = start()
    episode.act((7, 0, 0, 0, 1))  # a mistake, which the hints mend
    while episode.board()["ending"] is None:
        episode.act(episode.hint())
    assert episode.board()["ending"] == "solved"


def test_where_a_file_cannot_be_written_the_game_goes_on_and_says_so(start, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    episode = start(folder=blocked)
    episode.act((1, 0, 1, 0, 1))
    assert episode.board()["file_problem"].startswith("not saved (")
    blocked.unlink()
    episode.save()
    assert episode.board()["file_problem"] == ""
    assert json.loads(episode.file.read_text())["actions"] == [[1, 0, 1, 0, 1]]


def test_every_episode_gets_a_file_of_its_own_with_a_harmless_name(start, tmp_path):
    paths = set()
    for _ in range(2):
        episode = start(PairId("a/b c", "train", 0))
        episode.act((5, 0, 0, 0, 0))
        paths.add(episode.file)
    assert len(paths) == 2
    assert all(path.parent == tmp_path and "-a-b-c-" in path.name and " " not in path.name for path in paths)


def test_two_processes_that_begin_a_pair_in_one_second_do_not_write_into_one_file(tmp_path):
    begun = datetime.datetime(2026, 1, 2, 3, 4, 5)
    first, second = (new_episode_file(tmp_path, PairId("task", "test", 1), begun) for _ in range(2))
    assert first != second
    assert first.name.startswith("2026-01-02_03-04-05-task-test-1-")


def test_going_round_the_tasks_leaves_episodes_behind(tmp_path):
    played = PlayedTasks(TASKS, "two", FIRST, "bbox", tmp_path)
    left = played.episode.name
    played.go("previous")
    assert played.episode.pair_id == PairId("a/b c", "train", 0)
    played.go("random")
    assert played.episode.pair_id.task_id == "one"
    with pytest.raises(StaleEpisodeError):
        played.current(left)
    assert [one["output"] for one in played.puzzle()["demonstrations"]] == [None, [[3]]]  # not that of the pair in play


def test_an_episode_goes_on_where_it_was_left(start, tmp_path):
    first = start()
    first.hint()
    for color in (3, 1):
        first.act((color, 0, 1, 0, 1))
    earlier = read_human_episode(first.file)
    second = start()
    second.take_up(earlier.actions, earlier.spec.expert == HELPED, first.file)
    same = ("grid", "similarity", "reward", "return", "steps", "in_force", "moves")
    assert {name: first.board()[name] for name in same} == {name: second.board()[name] for name in same}
    assert second.board()["file"] is None, "nothing is written before something is done"
    second.rewind(1)
    second.act((34, 0, 0, 0, 0))
    assert second.file != first.file
    data = json.loads(second.file.read_text())
    assert data["actions"] == [[3, 0, 1, 0, 1], [34, 0, 0, 0, 0]]
    assert data["expert"] == "human-with-hints", "help that was taken before is not forgotten"
    assert data["session"]["continues"] == first.file.name
    assert [kind for _, kind, _ in data["session"]["events"]] == ["act", "act", "rewind", "act"]
    with pytest.raises(WrongMoveError):
        start().take_up([*earlier.actions, (34, 0, 0, 0, 0), (1, 0, 0, 0, 0)], False, first.file)


def test_a_file_of_several_traces_is_no_episode(start, tmp_path):
    first = start()
    first.act((1, 0, 0, 0, 0))
    path = tmp_path / "two.jsonl"
    path.write_text(2 * first.file.read_text())
    with pytest.raises(TraceFileError, match="2 traces"):
        read_human_episode(path)
