"""Games as frames and numbers, the account of the score, the explorer, recordings, and the pages that show them."""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from played_again import assert_plays_again
from run_command import run_command

import jaxarc.games
from jaxarc.files import CutFileWarning
from jaxarc.games import GameEnvironment, GameError, Level
from jaxarc.games.explorer import explore
from jaxarc.games.frames import NUM_ACTIONS, OwnFrames, from_number, to_number
from jaxarc.games.recordings import GameRecorder, GameRecordingError, is_recording, read_recording
from jaxarc.games.scoring import game_score
from jaxarc.render.game_page import to_digits

RIGHT, LEFT = to_number(4), to_number(3)


@functools.cache  # compiled once
def made(name, *levels):
    game = jaxarc.games.game(name)
    env = GameEnvironment(dataclasses.replace(game, levels=[Level(*level) for level in levels]) if levels else game)
    return env, env.make_params()


def small(name, *levels):
    """A game with other levels: the baselines with the maps."""
    return OwnFrames(*made(name, *levels))


def walk():
    return small("fog", (2, "P.G"), (1, "GP"))


def test_a_number_is_an_action_and_back():
    numbers = [to_number(action) for action in (1, 2, 3, 4, 5, 7)] + [to_number(6, 63, 0), to_number(6, 0, 63)]
    assert numbers == [0, 1, 2, 3, 4, 5, 69, 6 + 63 * 64]
    assert [from_number(number) for number in numbers[-3:]] == [(7, 0, 0), (6, 63, 0), (6, 0, 63)]
    assert NUM_ACTIONS == 4102


@pytest.mark.parametrize(
    ("told", "quoted"), [((6, 64, 0), "x 64"), ((6, 0, -1), "y -1"), ((0,), "got 0"), ((8,), "got 8")]
)
def test_a_click_outside_and_an_action_that_is_none_are_refused(told, quoted):
    game = walk()
    game.reset()
    with pytest.raises(GameError, match=quoted):
        to_number(*told)
    if told[0]:
        with pytest.raises(GameError, match=quoted):
            game.send(*told)
    assert game.spent == [0, 0]


def test_an_action_before_the_start_and_a_number_that_is_none_are_refused():
    with pytest.raises(GameError, match=r"'fog'.*RESET"):
        walk().step(RIGHT)
    game = walk()
    game.reset()
    with pytest.raises(GameError, match="4102"):
        game.step(NUM_ACTIONS)


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int64, np.array, jnp.int32])
def test_numbers_of_numpy_and_jax_are_those_of_python(kind, tmp_path):
    assert to_number(kind(6), kind(20), kind(20)) == 6 + 64 * 20 + 20
    assert from_number(kind(26)) == (6, 20, 0)
    recorder = GameRecorder(walk(), tmp_path / "one.jsonl")
    for action in (0, 4):
        recorder.send(kind(action), kind(3), kind(3))
    assert [step[:3] for step in read_recording(recorder.path).steps] == [(0, 0, 0), (4, 0, 0)]
    game = walk()
    game.reset()
    game.step(kind(RIGHT))
    assert game.spent == [1, 0]


@pytest.mark.parametrize("wrong", [3.0, 3.7, np.float32(3), jnp.float32(3), "3", None, np.array([3]), [3], 1 + 0j])
def test_what_is_no_whole_number_is_no_action(wrong, tmp_path):
    game = walk()
    game.reset()
    recorder = GameRecorder(game, tmp_path / "none.jsonl")
    for call in (
        lambda: to_number(wrong),
        lambda: to_number(6, wrong),
        lambda: to_number(6, 0, wrong),
        lambda: from_number(wrong),
        lambda: game.step(wrong),
        lambda: game.send(wrong),
        lambda: recorder.send(6, 0, wrong),
        lambda: explore(game, wrong),
        lambda: explore(game, 3, wrong),
        lambda: OwnFrames(*made("fog"), seed=wrong),
        lambda: OwnFrames(*made("fog"), baselines=[wrong] * 8),
    ):
        with pytest.raises(GameError, match=r"whole number, got .*; pass an int$"):
            call()
    assert not recorder.path.exists()
    assert game.spent == [0, 0]


def test_the_score_has_the_baselines_of_the_levels_that_are_played():
    env, own = made("lamps")
    baselines = [level.baseline for level in env.game.levels]
    some = dataclasses.replace(own, levels=own.levels[:, 2:5])
    assert OwnFrames(env, own).baselines == tuple(baselines)
    assert OwnFrames(env, some).baselines == tuple(baselines[2:5])
    game = OwnFrames(env, env.random_params(jax.random.key(0), 2))
    game.reset()
    assert np.isnan(game.score)
    game = OwnFrames(env, env.random_params(jax.random.key(0), 2), baselines=range(1, 9))
    game.reset()
    assert game.score == 0
    sets = dataclasses.replace(own, levels=jnp.concatenate([own.levels, own.levels[:, ::-1]]))
    drawn = {OwnFrames(env, sets, seed).baselines for seed in range(8)}
    assert drawn == {tuple(baselines), tuple(baselines[::-1])}


@pytest.mark.parametrize("wrong", [[3], [3] * 9, [0] * 8, []])
def test_baselines_are_one_a_level(wrong):
    with pytest.raises(GameError, match="baseline"):
        OwnFrames(*made("lamps"), baselines=wrong)
    with pytest.raises(GameError, match="one a level"):
        game_score([3], [3, 3], 1)


def test_a_level_shows_two_frames_and_the_account_counts_its_actions():
    game = walk()
    first = game.reset()
    assert (first.full_reset, first.levels_completed, first.win_levels, len(first.frames)) == (True, 0, 2, 1)
    game.step(to_number(5))  # this game does not have it: counted, and nothing changes
    game.step(RIGHT)
    seen = game.step(RIGHT)
    assert (len(seen.frames), seen.levels_completed, seen.state) == (2, 1, "NOT_FINISHED")
    assert game.spent == [3, 0]
    seen = game.step(LEFT)
    assert (seen.state, len(seen.frames), game.spent) == ("WIN", 1, [3, 1])
    assert game.score == pytest.approx((100 * (2 / 3) ** 2 + 2 * 100) / 3)
    assert not game.action_mask().any()
    assert game.step(RIGHT).frames == []
    assert game.spent == [3, 1]


def test_reset_of_a_level_counts_and_reset_of_all_begins_a_new_account():
    game = walk()
    game.reset()
    game.step(RIGHT)
    assert not game.reset().full_reset
    assert game.spent == [2, 0]
    assert game.reset().full_reset
    assert game.spent == [0, 0]
    state = game._state  # the engine keeps the same account
    assert state.spent.tolist() == [0, 0]


def test_masks_are_of_the_game():
    game = small("lamps", (1, "XX"))
    game.reset()
    assert game.action_mask().tolist() == [False] * 6 + [True] * 4096
    assert small("ice").action_mask().any() == np.False_


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("fog", [(2, "P.G"), (4, "P.#\n#..\n##G")]),
        ("lamps", [(1, "LX\nXX"), (1, "XXX\nLXL")]),  # there is no edge between lamps of one color
        ("flood", [(2, "ry\nyr", 6)]),
        ("fire", [(3, "....\n.P.G\nf#..")]),
    ],
)
def test_the_explorer_wins_without_learning(name, levels):
    found = explore(small(name, *levels), 3000)
    assert found.won
    assert found.levels_completed == len(levels)
    assert 0 < found.score <= 100
    assert all(spent >= level[0] for spent, level in zip(found.actions, levels, strict=True))


def test_the_explorer_gives_up_where_everything_was_tried_or_the_actions_are_spent():
    found = explore(small("fog", (1, "P.#G")), 500)
    assert (found.won, found.levels_completed, found.score) == (False, 0, 0)
    assert sum(found.actions) < 30
    assert sum(explore(small("fog"), 40).actions) <= 41


def test_equal_seeds_explore_alike():
    runs = [explore(small("ice"), 60, seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@pytest.fixture
def recorded(tmp_path):
    recorder = GameRecorder(walk(), tmp_path / "games" / "fog.jsonl")
    for action in (0, 4, 5, 4, 3):
        recorder.send(action)
    return recorder.path


def test_a_recording_is_read_as_it_was_played(recorded):
    recording = read_recording(recorded)
    assert recording.game == "fog"
    assert [step.action for step in recording.steps] == [0, 4, 5, 4, 3]
    assert [len(step.seen.frames) for step in recording.steps] == [1, 1, 1, 2, 1]
    assert recording.steps[-1].seen[1:4] == ("WIN", 2, 2)
    assert_plays_again(recording, walk())
    line = json.loads(recorded.read_text().splitlines()[1])
    assert line["data"]["action_input"] == {"id": "ACTION4", "data": {}, "reasoning": None}


@pytest.mark.parametrize(
    ("change", "quoted"),
    [
        (lambda data: data.update(game_id="ice"), ["line 2", "'ice'", "'fog'"]),
        (lambda data: data.pop("state"), ["line 2", "state"]),
        (lambda data: data.update(state="LOST"), ["line 2", "'LOST'"]),
        (lambda data: data["action_input"].update(id="ACTION9"), ["line 2", "ACTION9"]),
        (lambda data: data["frame"][0].pop(), ["line 2", "64x64"]),
        (lambda data: data["frame"][0][0].__setitem__(0, 16), ["line 2", "0 .. 15"]),
        (lambda data: data["frame"][0][0].append(3), ["line 2", "64x64"]),
        (lambda data: data.update(frame={"0": 1}), ["line 2", "frame", "list"]),
        (lambda data: data.update(frame=5), ["line 2", "frame", "list"]),
        (lambda data: data.update(available_actions=["up"]), ["line 2", "available_actions", "'up'"]),
        (lambda data: data.update(available_actions=[10**30]), ["line 2", "available_actions", "1 .. 7"]),
        (lambda data: data.update(available_actions="12"), ["line 2", "available_actions", "list"]),
        (lambda data: data["action_input"].update(id="ACTION6", data=[3, 4]), ["line 2", "[3, 4]"]),
        (lambda data: data["action_input"].update(id="ACTION6", data={"x": 10**30}), ["line 2", "ACTION6", "0 .. 63"]),
        (lambda data: data["action_input"].update(id=6, data={"x": 1.5, "y": 2}), ["line 2", "1.5"]),
        (lambda data: data.update(win_levels=10**9), ["line 2", "1000000000", "1000"]),
        (lambda data: data.update(levels_completed=3), ["line 2", "levels_completed 3", "win_levels 2"]),
        (lambda data: data.update(levels_completed=-1), ["line 2", "levels_completed -1"]),
    ],
)
def test_a_damaged_line_is_named(recorded, change, quoted):
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    change(lines[1]["data"])
    recorded.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(GameRecordingError) as caught:
        read_recording(recorded)
    assert all(word in str(caught.value) for word in quoted)


def test_a_recording_of_any_editor_is_read(recorded):
    text = recorded.read_text()
    assert text.count("\n") == 5
    reason = '"reasoning": "\u2028one\u2029two\x85three"'
    text = text.replace('"reasoning": null', reason).replace("\n", "\r\n\r\n")
    recorded.write_text(text, encoding="utf-8-sig", newline="")
    assert is_recording(recorded)
    assert_plays_again(read_recording(recorded), walk())


@pytest.mark.parametrize("ending", [b'{"timestamp": "', b'"\xc3', b"\0\0"])
def test_a_last_line_that_a_kill_cut_is_left_out_with_a_warning(recorded, ending):
    with recorded.open("ab") as file:
        file.write(ending)
    with pytest.warns(CutFileWarning, match="line 6 is cut"):
        assert len(read_recording(recorded).steps) == 5


@pytest.mark.parametrize(("content", "quoted"), [(b"\xff\xfe{\0", "line 1: not UTF-8"), (b"{}\n{\n{}\n", "line 1 ")])
def test_what_is_cut_elsewhere_is_an_error(tmp_path, content, quoted):
    path = tmp_path / "other.jsonl"
    path.write_bytes(content)
    with pytest.raises(GameRecordingError, match=quoted):
        read_recording(path)


def test_what_is_no_recording_is_refused(tmp_path):
    path = tmp_path / "other.jsonl"
    for text in ("", "no json", "[1]", '{"data": 3}'):
        path.write_text(text)
        assert not is_recording(path)
        with pytest.raises(GameRecordingError):
            read_recording(path)


def test_replay_writes_every_frame_into_a_page(recorded, tmp_path):
    page = tmp_path / "game.html"
    result = run_command("replay", recorded, "-o", page)
    assert result.exit_code == 0
    assert "5 actions, 2 of 2 levels" in result.stdout
    html = page.read_text()
    data = json.loads(html.partition('id="recording">')[2].partition("</script>")[0])
    frames = [frame for step in read_recording(recorded).steps for frame in step.seen.frames]
    assert [frame for step in data["steps"] for frame in step["frames"]] == [to_digits(frame) for frame in frames]
    assert "{" + "colors}" not in html


def test_the_site_of_a_game_answers_its_page(tmp_path):
    from jaxarc.play.game_site import GameSite

    site = GameSite(small("lamps", (1, "XX"), (1, "XX")), tmp_path / "lamps.jsonl")

    def act(**told):
        answer = site.play(json.dumps(told).encode())
        return answer.status_code, json.loads(answer.body)

    assert act(action=6, x=1, y=20)[1]["completed"] == 1
    assert "x 64" in act(action=6, x=64, y=0)[1]["error"]
    assert act(action="up", x=0, y=0)[0] == 400
    _, shown = act(action=6, x=40, y=40)
    assert (shown["state"], shown["actions"], shown["score"]) == ("WIN", 2, "100.0")
    assert len(read_recording(tmp_path / "lamps.jsonl").steps) == 3
