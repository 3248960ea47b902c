"""Every game: its rule against a plain form of it, its levels, its random levels, and what its levels may not hold."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from games.plain_rules import RULES
from games.record_twins import TWINS

import jaxarc.games
from jaxarc.games import Action, GameEnvironment, GameError, GameParams, Level, bits
from jaxarc.games.engine import pack
from jaxarc.games.level_solver import replay, solve

STEPS, STREAMS = 200, 4  # of each level
EASY = {  # random actions win no level of these games
    "bridges": Level(1, "PGp"),
    "paint": Level(2, "Pm"),
    "path": Level(2, "P.."),
    "pipes": Level(1, "....o.\n.So.D.\n......"),
    "shifts": Level(1, "RB...>br"),
}


def plain_board(game, index):
    board = game.board(index)
    cells = {**board.layers, "inside": board.inside}
    grids = {name: np.array(bits.to_bool(mask, game.shape[1])) for name, mask in cells.items()}
    return {**grids, **{name: int(number) for name, number in board.counters.items()}}


def test_each_game_has_a_twin_or_a_plain_form():
    assert sorted([*RULES, *TWINS]) == sorted(jaxarc.games.NAMES)


@pytest.mark.parametrize("name", RULES)
def test_the_rule_is_the_plain_one(name):
    game = jaxarc.games.game(name)
    if name in EASY:
        game = dataclasses.replace(game, levels=[*game.levels, EASY[name]])
    indices = np.repeat(np.arange(len(game.levels)), STREAMS)
    draw = np.random.default_rng(0)
    actions = draw.choice([number for number in game.actions if number != 7], (STEPS, len(indices))).astype(np.int32)
    clicks = np.stack([draw.integers(0, side, actions.shape, np.int32) for side in game.shape], -1)  # row, column
    boards = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(game.board(index) for index in indices))

    def play(board, number, click):
        cell = bits.cell(*click, game.shape[0]) & board.inside
        return game.rule(board, Action(number, bits.where(number == 6, cell)))

    def step(boards, told):
        numbers, clicks = told
        after, event = jax.vmap(play)(boards, numbers, clicks)
        cells = {layer: jax.vmap(lambda m: bits.to_bool(m, game.shape[1]))(m) for layer, m in after.layers.items()}
        ends = tuple(jnp.broadcast_to(jnp.asarray(one), numbers.shape) for one in event)
        return after, (cells, after.counters, ends)

    _, shown = jax.jit(lambda boards, told: jax.lax.scan(step, boards, told))(boards, (actions, clicks))
    cells, counters, (won, lost) = jax.tree.map(np.asarray, shown)
    for stream, index in enumerate(indices):
        board = plain_board(game, index)
        for time in range(STEPS):
            number, cell = int(actions[time, stream]), tuple(clicks[time, stream].tolist())
            board["click"] = cell if number == 6 and board["inside"][cell] else None
            ends = RULES[name](board, number)
            assert (won[time, stream], lost[time, stream]) == ends, (index, time)
            wrong = [layer for layer, found in cells.items() if not np.array_equal(found[time, stream], board[layer])]
            assert not wrong, (index, time)
            assert all(found[time, stream] == board[name] for name, found in counters.items())
    assert won.any()
    assert lost.any() == (name in {"fire", "gravity", "patrol"})


@pytest.mark.parametrize("name", jaxarc.games.NAMES)
def test_every_level_is_solved_in_its_baseline(name):
    env, params = jaxarc.games.make(name)
    assert len(env.game.levels) >= 8
    baselines = [level.baseline for level in env.game.levels]
    assert baselines == sorted(baselines)
    for index, level in enumerate(env.game.levels):
        found = solve(env, params.levels[0, index])
        assert found.actions is not None
        assert len(found.actions) == level.baseline
        assert replay(env, params, index, found.actions)
        assert not level.budget or level.baseline <= level.budget


@pytest.mark.parametrize("name", [name for name in jaxarc.games.NAMES if jaxarc.games.game(name).generate])
def test_random_levels_can_be_solved(name):
    env = GameEnvironment(jaxarc.games.game(name))
    params = jax.jit(env.random_params, static_argnums=1)(jax.random.key(1), 2)
    assert params.levels.shape[:2] == (2, len(env.game.levels))
    assert len(np.unique(np.asarray(params.levels).reshape(-1, params.levels.shape[-1]), axis=0)) > len(env.game.levels)
    for words in params.levels[:, :3].reshape(-1, params.levels.shape[-1]):
        assert solve(env, words, 20_000).actions


def test_a_game_without_random_levels_says_so():
    with pytest.raises(GameError, match="crates"):
        jaxarc.games.make("crates")[0].random_params(jax.random.key(0), 2)


@pytest.mark.parametrize(
    ("rows", "quoted"),
    [
        ("PCG\n.Z.", ["crates", "level 0", "row 1", "'Z'"]),
        ("PCG\n..", ["crates", "level 0", "row 1", "2 letters"]),
        (".CG", ["player", "exactly one", "got 0"]),
        ("PCP", ["player", "exactly one", "got 2"]),
        ("P.G", ["'crate'", "none"]),
        ("P" * 33, ["1 to 32"]),
    ],
)
def test_a_level_that_the_rule_cannot_play_is_refused(rows, quoted):
    with pytest.raises(GameError) as caught:
        dataclasses.replace(jaxarc.games.game("crates"), levels=[Level(1, rows)])
    assert all(word in str(caught.value) for word in quoted)


def test_a_level_that_cannot_be_solved_is_told_from_a_search_that_was_cut():
    game = dataclasses.replace(jaxarc.games.game("fog"), levels=[Level(1, "P#G"), Level(1, "P..........G")])
    env = GameEnvironment(game)
    assert solve(env, pack(game.board(0), 0, game)) == (None, 1, True)
    assert solve(env, pack(game.board(1), 0, game), 5).is_complete is False
    assert solve(env, pack(game.board(1), 10, game)).actions is None  # a budget is a limit
    assert solve(env, pack(game.board(1), 0, game)).actions == (4,) * 11


def test_a_list_that_solves_too_early_or_never_is_no_solution():
    env = GameEnvironment(dataclasses.replace(jaxarc.games.game("fog"), levels=[Level(1, "P.G")]))
    params = env.make_params()
    assert replay(env, params, 0, [4, 4])
    assert not replay(env, params, 0, [4, 4, 4])
    assert not replay(env, params, 0, [4, 3])
    assert not replay(env, GameParams(params.levels, params.max_steps), 0, [])


def test_a_game_that_is_not_there_is_named():
    with pytest.raises(GameError, match=r"'chess'.*crates"):
        jaxarc.games.make("chess")
    with pytest.raises(GameError, match="'pixels'"):
        jaxarc.games.make("crates", observation="pixels")
