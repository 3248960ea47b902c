"""The contract of the engine: RESET, levels, WIN, GAME_OVER, budgets, undo, frames, clicks, and what a step tells."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc.games
from jaxarc.games import CLICK, MOVES, UNDO, Color, GameEnvironment, GameError, GridGame, Level, LevelEvent, bits
from jaxarc.games.engine import GAME_OVER, NOT_FINISHED, UNDO_DEPTH, WIN
from jaxarc.games.level_solver import replay

RESET, UP, RIGHT, UNDONE, CELLS = 0, 1, 4, 5, 6  # actions of the little game below: moves, undo, then clicks


def rule(board, action):
    """Walk to the goal, and not into a pit; a click on the player wins."""
    player = bits.walk(board["player"], board.solid(), action.number)
    won = bits.some(player & board["goal"]) | bits.some(action.cell & player)
    return board.set(player=player, moves=board["moves"] + 1), LevelEvent(won, bits.some(player & board["pit"]))


GAME = GridGame(
    name="little",
    about="For these tests.",
    layers={"goal": Color.RED, "pit": None, "player": Color.WHITE},
    letters={"P": ("player",), "G": ("goal",), "x": ("pit",)},
    actions=(*MOVES, CLICK, UNDO),
    rule=rule,
    levels=[Level(1, "PG\n.."), Level(2, "xP.G"), Level(3, "P..G", budget=4, counters={"moves": 7})],
    counters={"moves": 0},
    undo=("player",),
)
ENV = GameEnvironment(GAME)
PARAMS = ENV.make_params(max_steps=50)


def start():
    return ENV.reset(jax.random.key(0), PARAMS)[0]


def after(*actions, state=None):
    state = start() if state is None else state
    for action in actions:
        state, _, reward, done, info = ENV.step(state, action, PARAMS)
    return state, float(reward), bool(done), {name: value.item() for name, value in info.items()}


def same(one, other):
    return all(np.array_equal(*both) for both in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def test_a_level_completed_gives_one_and_begins_the_next():
    state, reward, done, info = after(RIGHT)
    assert (reward, done, info["level"], info["levels_completed"]) == (1, False, 1, 1)
    assert int(state.action_count) == 0
    assert same(state.board, GAME.board(1))


def test_the_last_level_completed_is_win_and_ends():
    state, reward, done, info = after(RIGHT, RIGHT, RIGHT, RIGHT, RIGHT, RIGHT)
    assert (reward, done, info["terminated"], info["levels_completed"]) == (1, True, True, 3)
    assert int(state.status) == WIN
    assert state.spent.tolist() == [1, 2, 3]


def test_after_the_end_only_reset_does_something():
    won, *_ = after(*[RIGHT] * 6)
    still, reward, done, _ = after(RIGHT, state=won)
    assert same(still, won)
    assert (reward, done) == (0, True)
    again, _, done, info = after(RESET, state=won)
    assert (done, info["levels_completed"], int(again.status)) == (False, 0, NOT_FINISHED)


def test_reset_starts_the_level_again_and_the_game_if_nothing_was_done_in_it():
    state, _, _, info = after(RIGHT, RIGHT, RESET)
    assert info["levels_completed"] == 1
    assert same(state.board, GAME.board(1))
    _, _, _, info = after(RESET, state=state)
    assert info["levels_completed"] == 0


def test_a_lost_level_is_game_over_and_reset_plays_it_again():
    lost, reward, done, info = after(RIGHT, 3)
    assert (reward, done, int(lost.status), info["levels_completed"]) == (0, True, GAME_OVER, 1)
    state, _, done, _ = after(RESET, state=lost)
    assert not done
    assert same(state.board, GAME.board(1))


def test_a_budget_ends_the_level_even_by_actions_that_do_not_exist():
    state, *_ = after(RIGHT, RIGHT, RIGHT)
    assert (int(state.budget), int(state.board["moves"])) == (4, 7)
    state, _, done, info = after(UP, 999, UP, state=state)
    assert (done, info["actions_left"]) == (False, 1)
    _, _, done, _ = after(UP, state=state)
    assert done


def test_the_last_action_of_a_budget_may_win():
    state, reward, *_ = after(RIGHT, RIGHT, RIGHT, UP, RIGHT, RIGHT, RIGHT)
    assert (reward, int(state.status)) == (1, WIN)


@pytest.mark.parametrize("action", [-1, 99, 1 + 5 + 8])
def test_an_action_that_does_not_exist_is_counted_and_changes_nothing(action):
    state, reward, _, info = after(action)
    assert (reward, info["invalid_action"], int(state.action_count)) == (0, True, 1)
    assert same(state.board, start().board)
    assert not after(RIGHT)[3]["invalid_action"]


def test_a_click_beside_the_level_is_no_action():
    # The arrays are 2x4, and the first level is 2x2.
    assert after(CELLS + 2)[3]["invalid_action"]
    assert after(CELLS + 1)[3]["invalid_action"] is False
    assert after(CELLS)[1] == 1
    mask = ENV.action_mask(start())
    assert mask.tolist() == [True] * 6 + [True, True, False, False] * 2


def test_undo_takes_back_and_is_counted():
    state, *_ = after(RIGHT, RIGHT, UNDONE)
    assert bits.same(state.board["player"], GAME.board(1)["player"])
    assert int(state.action_count) == 2
    assert same(after(UNDONE, state=state)[0].board.layers, state.board.layers)  # there is nothing left to take back


def test_undo_forgets_what_is_too_long_ago_and_what_changed_nothing():
    assert int(after(1)[0].history_size) == 0  # against the edge
    walk = [2, 1] * (UNDO_DEPTH // 2 + 1)
    state, *_ = after(*walk, 1)
    assert int(state.history_size) == UNDO_DEPTH
    for _ in range(UNDO_DEPTH):
        state, *_ = after(UNDONE, state=state)
    assert int(state.history_size) == 0


def test_steps_are_limited():
    params = dataclasses.replace(PARAMS, max_steps=jnp.int32(2))
    state = start()
    for expected in (False, True, True):
        state, _, _, done, info = ENV.step(state, RESET, params)
        assert (bool(done), bool(info["truncated"]), bool(info["terminated"])) == (expected, expected, False)
    assert int(state.step_count) == 2


def test_a_frame_is_the_largest_whole_scale_in_the_middle():
    frame = np.asarray(ENV.frame(after(RIGHT)[0]))  # 1x4: cells of 16, rows 24 .. 39
    assert frame.shape == (64, 64)
    assert (frame[:24] == 5).all()
    assert (frame[40:] == 5).all()
    assert frame[24:40].tolist() == [[4] * 16 + [0] * 16 + [4] * 16 + [8] * 16] * 16


def test_the_bar_shows_what_is_left_of_a_budget():
    state, *_ = after(RIGHT, RIGHT, RIGHT, UP)
    assert np.asarray(ENV.frame(state))[-1].tolist() == [11] * 48 + [3] * 16


def test_clicks_in_the_frame_hit_cells():
    state, *_ = after(RIGHT)
    assert int(ENV.action_of(CLICK, state, 17, 24)) == CELLS + 1
    assert int(ENV.action_of(CLICK, state, 17, 23)) == ENV.num_actions  # the letterbox
    assert [int(ENV.action_of(number, state)) for number in (0, 4, 7, 5)] == [0, 4, 5, ENV.num_actions]


def test_cells_say_where_the_level_ends():
    _, observation = ENV.reset(jax.random.key(0), PARAMS)
    assert observation.tolist() == [[0, 8, -1, -1], [4, 4, -1, -1]]
    assert observation.dtype == jnp.int8
    frames = GameEnvironment(GAME, "frame")
    assert frames.reset(jax.random.key(0), PARAMS)[1].shape == (64, 64)


def test_auto_reset_starts_anew_and_tells_how_it_ended():
    state, *_ = after(*[RIGHT] * 5)
    fresh, observation, reward, done, info = ENV.step_and_reset(state, RIGHT, PARAMS)
    assert (float(reward), bool(done), int(info["levels_completed"])) == (1, True, 3)
    assert same(fresh.board, GAME.board(0))
    assert (int(fresh.step_count), int(fresh.levels_completed)) == (0, 0)
    assert np.array_equal(observation, ENV.observe(fresh))
    assert not np.array_equal(info["final_observation"], observation)
    assert not np.array_equal(fresh.key, state.key)


def test_a_batch_is_each_of_its_games():
    env, params = jaxarc.games.make("lamps")
    keys = jax.random.split(jax.random.key(3), 5)
    states, _ = jax.vmap(env.reset, (0, None))(keys, params)
    actions = jnp.arange(5)
    batch = jax.vmap(env.step, (0, 0, None))(states, actions, params)
    for index in range(5):
        one = env.step(env.reset(keys[index], params)[0], actions[index], params)
        assert same(jax.tree.map(lambda leaf, at=index: leaf[at], batch), one)


def test_equal_keys_draw_equal_levels_and_others_do_not():
    env = GameEnvironment(jaxarc.games.game("lamps"))
    params = env.random_params(jax.random.key(0), 8)
    sets = [int(env.reset(jax.random.key(seed), params)[0].set_index) for seed in range(12)]
    assert sets == [int(env.reset(jax.random.key(seed), params)[0].set_index) for seed in range(12)]
    assert len(set(sets)) > 2


@pytest.mark.parametrize(
    ("changes", "quoted"),
    [({"undo": ()}, "action 7"), ({"letters": {"Z": ("zebra",)}}, "'zebra'"), ({"actions": MOVES}, "action 7")],
)
def test_facts_that_contradict_each_other_are_refused(changes, quoted):
    with pytest.raises(GameError, match=quoted):
        dataclasses.replace(GAME, **changes)


@pytest.mark.parametrize("wrong", [4.7, 4.0, np.float32(4), jnp.float32(4), "4", None, [4], jnp.array([4])])
def test_an_action_is_a_whole_number(wrong):
    state = start()
    for call in (ENV.step, ENV.step_and_reset, ENV.play):
        with pytest.raises(GameError, match=r"an action is .*whole number"):
            call(state, wrong, PARAMS)
    with pytest.raises(GameError, match="whole number"):
        ENV.action_of(wrong, state)
    with pytest.raises(GameError, match=r"task_index is .*whole number"):
        ENV.reset(jax.random.key(0), PARAMS, wrong if wrong is not None else "first")
    with pytest.raises(GameError, match="an action is one whole number"):
        jax.vmap(ENV.step, (None, 0, None))(state, jnp.zeros(3), PARAMS)


@pytest.mark.parametrize("action", [10**30, -(10**30), 2**32, np.int64(2**32), np.uint64(2**63)])
def test_an_action_of_any_size_is_none(action):
    state = start()
    after, *_, info = ENV.step(state, action, PARAMS)
    assert info["invalid_action"]
    assert int(after.action_count) == 1


@pytest.mark.parametrize("index", [1, 99, -1, 10**30, np.uint8(1), jnp.int32(1)])
def test_a_set_that_is_not_there_is_refused(index):
    with pytest.raises(GameError, match=r"task_index is 0 .. 0, got -?\d+"):
        ENV.reset(jax.random.key(0), PARAMS, index)
    assert int(ENV.reset(jax.random.key(0), PARAMS, np.int64(0))[0].set_index) == 0


@pytest.mark.parametrize("number", [0, -1, 1.5, "2", 2**31])
def test_params_need_numbers_from_one_on(number):
    lamps = GameEnvironment(jaxarc.games.game("lamps"))
    for call in (
        lambda: lamps.random_params(jax.random.key(0), number),
        lambda: lamps.random_params(jax.random.key(0), 1, number),
        lambda: lamps.make_params(number),
        lambda: jaxarc.games.make("lamps", max_steps=number),
    ):
        with pytest.raises(GameError, match=rf"whole number.*, got '?{number}"):
            call()


def test_params_and_states_of_another_game_are_refused():
    made = {name: jaxarc.games.make(name) for name in ("mirrors", "order", "lamps")}
    for name, (env, params) in made.items():
        state, _ = env.reset(jax.random.key(0), params)
        for other, (wrong, others) in made.items():
            if name == other:
                continue
            for call in (
                lambda env=env, others=others: env.reset(jax.random.key(0), others),
                lambda env=env, state=state, others=others: env.step(state, 1, others),
                lambda wrong=wrong, state=state, others=others: wrong.step(state, 1, others),
            ):
                with pytest.raises(GameError, match=f"'({name}|{other})'"):
                    call()
    with pytest.raises(GameError, match="tuple"):
        ENV.reset(jax.random.key(0), (1, 2))


def test_a_level_that_is_not_there_is_refused():
    for wrong in (-1, len(GAME.levels), 1.5):
        with pytest.raises(GameError, match="level"):
            GAME.board(wrong)
        with pytest.raises(GameError, match="level"):
            replay(ENV, PARAMS, wrong, [1])


def test_a_rule_that_sets_what_is_not_there_is_told():
    with pytest.raises(KeyError, match="'wall'"):
        GAME.board(0).set(wall=jnp.zeros(2, jnp.uint32))
