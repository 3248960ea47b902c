"""Rules that are drawn at random: what their programs do, that each makes a task, and that a seed decides all."""

import itertools

import numpy as np
import pytest

from jaxarc.datasets import load_tasks
from jaxarc.search import GridProgram, ProgramError, drawn_rules
from jaxarc.search.drawn_rules import PARTS, HeldOut, Scenes, TooFewRulesError, draw_batches, draw_rules
from jaxarc.search.pieces import ImageLayer
from jaxarc.search.programs import SizeRule
from jaxarc.search.words import kinds_of

CANVAS = 10


def scenes_of(canvas):
    inputs = [
        [grid for grid, _ in task.pairs if max(grid.shape) <= canvas] for task in load_tasks("arc-agi-1/training")
    ]
    return Scenes.of(inputs)


@pytest.fixture(scope="module")
def rules():
    return draw_batches(scenes_of(CANVAS), CANVAS, 7, 3)


def pairs_of(rules, place):
    """Return the pairs of a rule, as grids."""
    sizes = rules.sizes[place].reshape(-1, 2)
    begin = rules.areas[:place].sum()
    cells = np.split(rules.cells[begin : begin + rules.areas[place]], np.cumsum(sizes.prod(1, dtype=int))[:-1])
    grids = [row.reshape(size) for row, size in zip(cells, sizes, strict=True)]
    return list(zip(grids[::2], grids[1::2], strict=True))


def layer_of(text):
    (layer,) = GridProgram.parse(text).layers
    assert isinstance(layer, ImageLayer)
    return layer


def answer_of(program, grid):
    try:
        return program(grid.astype(np.int8)).tolist()
    except ProgramError:
        return None


def test_the_same_rules_are_drawn_on_every_machine(rules):
    """Other words or scenes make other rules of a seed; users are told then."""
    program = "drop_single_cells > invert > downscale"
    assert f"{int(rules.hashes[3]):016x}" == "137489f15cef18ac"
    assert rules.programs()[3] == f"recolor none; size {program}; {program}"


def test_programs_make_their_pairs_in_numpy(rules):
    assert len(rules.hashes) > 8
    for place, text in enumerate(rules.programs()):
        program = GridProgram.parse(text)
        assert str(program) == text
        for source, target in pairs_of(rules, place):
            np.testing.assert_array_equal(program(source.astype(np.int8)), target, err_msg=text)


@pytest.mark.parametrize("canvas", [4, CANVAS])
def test_each_rule_makes_a_task(canvas):
    rules = draw_batches(scenes_of(canvas), canvas, 0, 0)
    assert len(rules.hashes)
    for place in range(len(rules.hashes)):
        pairs = pairs_of(rules, place)
        assert max(max(grid.shape) for pair in pairs for grid in pair) <= canvas
        assert all(len(np.unique(target)) > 1 for _, target in pairs)
        assert all(source.tolist() != target.tolist() for source, target in pairs)
        for of_one, of_other in itertools.combinations(pairs, 2):
            assert of_one[0].tolist() != of_other[0].tolist()
            assert of_one[1].tolist() != of_other[1].tolist()


def test_no_rule_is_as_well_one_function_or_has_one_to_spare(rules):
    one_function = [(word,) for word in drawn_rules._words() if False in kinds_of((word,))[-1]]
    several = [place for place, text in enumerate(rules.programs()) if len(layer_of(text).words) > 1]
    assert len(several) > 6
    for place in several[:6]:
        pairs, layer = pairs_of(rules, place), layer_of(rules.programs()[place])
        shorter = [layer.words[:left_out] + layer.words[left_out + 1 :] for left_out in range(len(layer.words))]
        shorter = [chain for chain in shorter if chain and kinds_of(chain)[-1] == {False}]
        others = [(chain, placed) for chain in one_function for placed in (False, True)]
        for chain, placed in [*others, *((chain, layer.is_placed) for chain in shorter)]:
            size = SizeRule() if placed else SizeRule(words=chain)
            program = GridProgram((ImageLayer(chain, is_placed=placed),), size)
            assert any(answer_of(program, source) != target.tolist() for source, target in pairs), program


def test_programs_of_one_hash_do_the_same_on_fresh_grids():
    scenes = scenes_of(CANVAS)
    texts: dict[int, set[str]] = {}
    for batch in range(6):
        drawn = draw_batches(scenes, CANVAS, 1, batch)
        for number, text in zip(drawn.hashes.tolist(), drawn.programs(), strict=True):
            texts.setdefault(number, set()).add(text)
    twice = [sorted(found) for found in texts.values() if len(found) > 1]
    assert len(twice) > 3
    fresh = [np.random.default_rng(seed).integers(0, 4, (3 + seed % 6, 7)) for seed in range(30)]
    for first, *others in twice:
        wanted = [answer_of(GridProgram.parse(first), grid) for grid in fresh]
        for other in others:
            assert [answer_of(GridProgram.parse(other), grid) for grid in fresh] == wanted, (first, other)


@pytest.fixture
def short_jobs(monkeypatch):
    monkeypatch.setattr(drawn_rules, "_BATCHES", 1)


def hashes_and_texts(drawn):
    """The hash and the text of each rule by part, in the order in which they are drawn."""
    found = {part: [] for part in PARTS}
    for by_part in drawn:
        for part, rules in by_part.items():
            found[part] += zip(rules.hashes.tolist(), rules.programs(), strict=True)
    return found


def test_a_seed_gives_the_same_rules_in_any_number_of_processes(short_jobs):
    scenes = scenes_of(5)
    one, two = (hashes_and_texts(draw_rules(scenes, {"training": 60}, 5, 3, processes)) for processes in (1, 2))
    assert one == two
    hashes = {number for number, _ in one["training"]}
    assert len(hashes) == 60
    other = next(draw_rules(scenes, {"training": 60}, 5, 4))["training"]
    assert set(other.hashes.tolist()) != hashes


def test_too_few_rules_say_how_many_there_are(short_jobs):
    few = Scenes.of([[np.array([[1, 2], [0, 0]])]])
    with pytest.raises(TooFewRulesError, match=r"after [1-9]\d* rules hardly any is new.* 999,\d+ of training"):
        for _ in draw_rules(few, {"training": 10**6}, 2, 0):
            pass
    same = Scenes.of([[np.array([[1]])], [np.array([[2]])]])
    with pytest.raises(TooFewRulesError, match=r"after 0 rules .* 5 of training"):
        list(draw_rules(same, {"training": 5}, 2, 0))
    with pytest.raises(ValueError, match="a side of 2, and the canvas is 1"):
        next(draw_rules(few, {"training": 5}, 1, 0))
    with pytest.raises(TooFewRulesError, match="no input fits the canvas"):
        Scenes.of([[], []])


def test_each_part_has_what_training_never_sees(short_jobs):
    held_out = HeldOut.choose(0)
    assert held_out != HeldOut.choose(1)
    counts = dict.fromkeys(PARTS, 30) | {"training": 300}
    drawn = hashes_and_texts(draw_rules(scenes_of(CANVAS), counts, CANVAS, 0, 1, held_out))
    hashes = [number for found in drawn.values() for number, _ in found]
    assert len(set(hashes)) == len(hashes) == sum(counts.values())
    chains = {part: [layer_of(text).words for _, text in found] for part, found in drawn.items()}
    assert {part: len(found) for part, found in chains.items()} == counts
    functions, pairs, words = ({}, {}, {})
    for part, found in chains.items():
        functions[part] = {word.name for chain in found for word in chain}
        pairs[part] = {two for chain in found for two in itertools.pairwise(word.name for word in chain)}
        words[part] = {word for chain in found for word in chain}
    for part in PARTS:  # of each kind the part named after it alone has some
        assert bool(functions[part] & held_out.functions) == (part == "words")
        assert bool(pairs[part] & held_out.pairs) == (part == "compositions")
        assert bool(words[part] & held_out.words) == (part == "arguments")


def test_no_held_out_rule_does_what_a_trained_one_does_on_1000_fresh_grids(short_jobs):
    """The hash of 64 probe grids tells rules apart; grids that no rule was drawn on do, too."""
    counts = dict.fromkeys(PARTS, 60) | {"training": 600}
    drawn = hashes_and_texts(draw_rules(scenes_of(CANVAS), counts, CANVAS, 2, 1, HeldOut.choose(2)))
    parts = [part for part, found in drawn.items() for _ in found]
    programs = [GridProgram.parse(text) for found in drawn.values() for _, text in found]
    inputs = [grid for task in load_tasks("arc-agi-1/evaluation") for grid, _ in task.pairs]
    real = [grid for grid in inputs if max(grid.shape) <= CANVAS][:500]
    random = np.random.default_rng(0)
    noise = [
        random.integers(0, random.integers(2, 6), random.integers(2, CANVAS + 1, 2)) for _ in range(1000 - len(real))
    ]
    alike = [list(range(len(programs)))]  # groups of rules that did the same on all grids so far
    fresh = random.permutation(np.array([*real, *noise], object))
    assert len(fresh) == 1000
    for grid in fresh:
        groups = [group for group in alike if len({parts[rule] == "training" for rule in group}) == 2]
        alike = []
        for group in groups:
            by_answer: dict[str, list[int]] = {}
            for rule in group:
                by_answer.setdefault(repr(answer_of(programs[rule], grid)), []).append(rule)
            alike += by_answer.values()
    mixed = [
        [str(programs[rule]) for rule in group] for group in alike if len({parts[r] == "training" for r in group}) == 2
    ]
    assert not mixed
