"""The search on tasks whose rule is known: answers, programs as text, limits, and what it must not see."""

import numpy as np
import pytest

from jaxarc.config import SearchConfig
from jaxarc.search import GridProgram, ProgramError, Question, search_all, solve
from jaxarc.search.solve import Found, TaskSearch, likeliest

SMALL = SearchConfig(max_cost=2)


def grids(*shapes, colors=(0, 1, 2), seed=0):
    random = np.random.default_rng(seed)
    return [random.choice(colors, shape).astype(np.int8) for shape in shapes]


def demonstrate(rule, sources):
    return [(source, rule(source).astype(np.int8)) for source in sources]


def cropped(grid):
    rows, columns = np.nonzero(grid)
    return grid[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]


def exclusive_or(grid):
    """Color 3 where color 1 or color 2 is in the left half or the right half, but not in both."""
    left, right = grid[:, :3], grid[:, 3:]
    return np.where((left != 0) ^ (right != 0), 3, 0)


RULES = {
    "mirror": lambda grid: grid[:, ::-1],
    "turn": np.rot90,
    "crop": cropped,
    "scale": lambda grid: np.kron(grid, np.ones((2, 2), np.int8)),
    "repeat": lambda grid: np.tile(grid, (1, 2)),
    "recolor": lambda grid: np.array([0, 5, 7])[grid],
    "layers": lambda grid: np.where(grid == 1, 1, np.where(grid[::-1] == 2, 2, 0)),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_of_one_or_two_functions_is_found_and_runs_on_an_unseen_grid(name):
    rule = RULES[name]
    *shown, asked = grids((3, 4), (4, 4), (5, 4), (4, 5))
    best = solve(demonstrate(rule, shown), asked, SMALL).answers[0]
    np.testing.assert_array_equal(best.answer, rule(asked))
    assert best.fits_all
    (unseen,) = grids((4, 4), seed=7)
    np.testing.assert_array_equal(GridProgram.parse(str(best.program))(unseen), rule(unseen))


def solved(rule, shown, asked, config=SMALL):
    """Return the best answer's program, which must be right for the test input and run again."""
    best = solve(demonstrate(rule, shown), asked, config).answers[0]
    np.testing.assert_array_equal(best.answer, rule(asked))
    np.testing.assert_array_equal(GridProgram.parse(str(best.program))(asked), rule(asked))
    return str(best.program)


def test_the_scale_may_be_the_number_of_colors():
    shown = [np.array([[1, 2]]), np.array([[0, 1, 2, 3]]), np.array([[4, 0], [0, 5]])]
    scaled = lambda grid: np.kron(grid, np.ones([len(set(grid.ravel()) - {0})] * 2, np.int8))
    assert "upscale_by_colors" in solved(scaled, shown, np.array([[6, 7, 8, 9]]))


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (lambda grid: np.kron(grid[:, ::-1] != 0, grid), "product rigid(flip_columns) by input"),
        (lambda grid: np.kron(grid, grid[::-1] != 0), "product input by shape of rigid(flip_rows)"),
    ],
)
def test_an_outer_product_of_two_images_is_found(rule, text):
    *shown, asked = grids((2, 3), (2, 3), (3, 3), (3, 2), seed=1)
    assert text in solved(rule, shown, asked)


def test_a_table_is_found_although_a_demonstration_has_faults():
    rule = lambda grid: np.where((grid == 0) & (np.pad(grid, 1)[:-2, 1:-1] == 1), 3, grid)
    *shown, asked = grids((6, 7), (7, 6), (7, 7), (6, 6))
    train = demonstrate(rule, shown)
    train[1][1][[0, 2, 3, 5, 6], [3, 1, 4, 0, 5]] = 5, 6, 7, 8, 9
    best = solve(train, asked, SMALL).answers[0]
    assert best.fits == (True, False, True)
    np.testing.assert_array_equal(best.answer, rule(asked))
    np.testing.assert_array_equal(GridProgram.parse(str(best.program))(asked), rule(asked))


def test_a_second_program_mends_the_answer_of_the_first():
    steps = ("connect(cross)", "fill_enclosed", "shift(1, 0)")
    rule = GridProgram.parse(" => ".join(f"recolor none; size input; {step}" for step in steps))

    def corners(seed):
        random = np.random.default_rng(seed)
        (top, left), (height, width) = random.integers(1, 4, 2), random.integers(3, 6, 2)
        grid = np.zeros((11, 12), np.int8)
        grid[np.ix_((top, top + height), (left, left + width))] = 3
        return grid

    assert " => " in solved(rule, [corners(seed) for seed in (1, 2, 3)], corners(7))


def test_a_table_of_two_halves_is_their_exclusive_or():
    *shown, asked = grids((3, 6), (3, 6), (3, 6), (3, 6), colors=(0, 1))
    best = solve(demonstrate(exclusive_or, shown), asked, SMALL).answers[0]
    np.testing.assert_array_equal(best.answer, exclusive_or(asked))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("recolor none; size input; color 3 + input", [[3, 3]]),
        ("recolor none; size input; table rigid(flip_columns) : 1 = 5, else = input", [[1, 5]]),
        ("recolor none; size input; table input copy rigid(flip_columns) : 1 = copy, 2 = 5", [[2, 5]]),
        ("recolor none; size input; product input by shape of rigid(flip_columns)", [[1, 1]]),
        ("recolor none; size input; rigid(flip_columns) => recolor none; size input; half(left)", [[2, 0]]),
        ("orient transpose; recolor none; size input * 1x2; tile(1, 2)", [[1, 2], [1, 2]]),
    ],
)
def test_a_program_is_read_back_from_its_text_and_runs(text, answer):
    program = GridProgram.parse(text)
    assert str(program) == text
    np.testing.assert_array_equal(program([[1, 2]]), answer)


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        ("extend(columns)", "010 010 000 000", "010 010 010 010"),
        ("extend(diagonals)", "1000 0100 0000 0000", "1000 0100 0010 0001"),
        ("extend(cross)", "1100 0000 0020", "1111 0000 0020"),
        ("shift(1, -1)", "012 034 000", "000 120 340"),
        ("trail(1, 1)", "1000 0000 0000", "1000 0100 0010"),
        ("pad(2, 1)", "12", "12 00"),
        ("pad_to(2, 3)", "12", "120 000"),
        ("split(frames) > item(0)", "00000 05550 05250 05550 30000", "555 525 555"),
        ("split(windows) > item(0)", "5550 5020 5050", "555 502 505"),
        ("unit", "1212 3434 1212", "12 34 12"),
    ],
)
def test_a_function_extends_lines_and_cuts_out(words, before, after):
    grid, expected = (np.array([[int(cell) for cell in row] for row in text.split()]) for text in (before, after))
    np.testing.assert_array_equal(GridProgram.parse(f"recolor none; size {words}; {words}")(grid), expected)


@pytest.mark.parametrize(
    ("feature", "before", "after"),
    [
        ("any_sees_down", "100 000 550", "000 000 110"),
        ("one_color_beside", "1200 1200 0003", "2100 2100 0000"),
        ("rooms_commonest_but_0", "05020 05000 55555 00300", "00222 00222 00000 33333"),
        ("one_color_is_symmetric", "1100 1000 0000 0222", "1100 1000 0000 0222"),
        ("one_color_from_bottom", "1100 1000 0000 0222", "2200 1000 0000 0111"),
        ("one_color_from_right", "1100 1000 0000 0222", "2100 2000 0000 0321"),
        ("one_color_same_size", "1100 1000 0000 0222", "2200 2000 0000 0222"),
        ("one_color_area_rank", "1100 1000 0000 0222", "1100 1000 0000 0222"),
        ("space", "0002 0000 0010", "6660 6660 6600"),
        ("largest_space", "0002 0000 0010", "1110 1110 1100"),
        ("distance_4", "1000 0000 0002", "0122 1221 2210"),
        ("distance_8", "1000 0000 0002", "0122 1111 2210"),
        ("distance_8_parity", "1000 0000 0002", "0100 1111 0010"),
        ("nearest_4", "1000 0000 0002", "1112 1122 1222"),
        ("nearest_8", "1000 0000 0002", "1102 1122 1022"),
        ("holder", "33333 30003 30503 33333", "00000 03330 03330 00000"),
        ("seen_colored", "1000 0000 0002", "0212 1111 2120"),
    ],
)
def test_a_feature_says_something_of_the_object_of_a_cell(feature, before, after):
    grid, expected = (np.array([[int(cell) for cell in row] for row in text.split()]) for text in (before, after))
    rows = ", ".join(f"{value} = {value}" for value in range(10))
    program = GridProgram.parse(f"recolor none; size input; table cell_feature({feature}) : {rows}")
    np.testing.assert_array_equal(program(grid), expected)


@pytest.mark.parametrize("sides", [(0, 1, 3, 2), (2, 0, 1, 3)])
def test_a_rule_is_found_that_looks_to_one_side_of_each_grid(sides):
    """The marker, at one side of each grid, draws a line to the opposite side."""

    def rule(grid):
        side = next(k for k in range(4) if (np.rot90(grid, k)[0] == 3).any())
        turned = np.rot90(grid, side).copy()
        turned[1:][:, turned[0] == 3] = np.where(turned[1:][:, turned[0] == 3] == 0, 3, turned[1:][:, turned[0] == 3])
        return np.rot90(turned, -side)

    shown = []
    for seed, side in enumerate(sides):
        grid = np.random.default_rng(seed).choice([0, 0, 0, 2], (8, 8)).astype(np.int8)
        grid[0] = 0
        grid[0, 3 + seed] = 3
        shown.append(np.rot90(grid, -side))
    assert solved(rule, shown[:-1], shown[-1], SMALL).startswith("orient ")


def test_a_color_that_only_the_test_has_is_answered():
    shown = [
        np.where(grid, color, 0).astype(np.int8) for grid, color in zip(grids((3, 3), (4, 3)), (1, 2), strict=True)
    ]
    asked = np.where(grids((3, 4), seed=3)[0], 6, 0).astype(np.int8)
    result = solve(demonstrate(lambda grid: np.full((1, 1), grid.max()), shown), asked, SMALL)
    np.testing.assert_array_equal(result.answers[0].answer, [[6]])


def test_answers_differ_and_a_program_says_what_its_answer_is():
    *shown, asked = grids((3, 3), (3, 3), (3, 3))
    result = solve(demonstrate(np.transpose, shown), asked, SearchConfig(max_cost=2, answers=5))
    answers = [found.answer.tolist() for found in result.answers]
    assert len({str(answer) for answer in answers}) == len(answers)
    for found in result.answers:
        if found.program is not None:
            np.testing.assert_array_equal(GridProgram.parse(str(found.program))(asked), found.answer)
            assert found.program.in_words()


def test_the_search_has_no_argument_for_the_answer_and_two_runs_agree():
    """What goes to the other processes are demonstrations and test inputs; the result depends on nothing else."""
    assert Question._fields == ("task_id", "test_index", "train", "test_input")
    *shown, asked = grids((3, 4), (4, 4), (4, 5))
    train = tuple(demonstrate(np.flipud, shown))
    question = Question("flip", 0, train, asked)
    ((_, first),) = search_all([question], SMALL)
    second = solve(train, asked, SMALL)
    assert [str(one.program) for one in first.answers] == [str(one.program) for one in second.answers]


@pytest.mark.parametrize("limit", [{"seconds": 0.0}, {"max_states": 1}, {"max_cost": 0}])
def test_a_search_that_reaches_a_limit_still_answers(limit):
    *shown, asked = grids((3, 4), (4, 4), (30, 30))
    result = solve(demonstrate(lambda grid: grid[:1], shown), asked, SearchConfig(**limit))
    assert result.answers
    assert result.is_cut or limit == {"max_cost": 0}


def test_the_states_of_all_views_of_a_search_share_its_memory():
    *shown, asked = grids((6, 6), (6, 6), (6, 6))
    noise = np.random.default_rng(0)
    train = demonstrate(lambda grid: noise.integers(0, 5, (6, 6)), shown)  # which no program makes
    bytes_at = {}
    for megabytes in (8, 40):
        search = TaskSearch(train, asked, SearchConfig(megabytes=megabytes, max_cost=5, max_states=10**6))
        assert search.go_on(1e9).is_cut
        bytes_at[megabytes] = search.num_bytes
    # A view may take a twentieth, and looks after 4,096 states whether it has its part.
    assert bytes_at[8] < 24e6 < bytes_at[40] < 64e6


@pytest.mark.parametrize("shape", [(3, 4), (30, 30), (1, 30)])
def test_one_demonstration_of_any_size_is_answered(shape):
    shown, asked = grids(shape, shape, colors=(1, 2))
    result = solve(demonstrate(lambda grid: 3 - grid, [shown]), asked, SearchConfig(max_cost=1))
    np.testing.assert_array_equal(result.answers[0].answer, 3 - asked)


def test_a_program_without_an_answer_for_a_grid_says_which_function_has_none():
    with pytest.raises(ProgramError, match="crop"):
        GridProgram.parse("recolor none; size crop; crop")(np.zeros((3, 3), np.int8))
    with pytest.raises(ProgramError, match="5"):
        GridProgram.parse("recolor none; size input; table input : 0 = 1")([[5]])


def candidate(text, cost, answer, fits=(True, True)):
    return Found(np.array([answer], np.int8), GridProgram.parse(text), fits, 1.0, cost)


ONE_VIEW = [f"recolor none; size input; solid rigid({how})" for how in ("turn_90", "turn_180", "turn_270")]
OTHER_VIEW = "orient transpose; recolor none; size input; solid rigid(turn_90)"


@pytest.mark.parametrize(
    ("first", "others"),
    [
        ([5, 6], [candidate(ONE_VIEW[0], 12, [5, 6]), candidate(OTHER_VIEW, 12, [5, 6])]),  # two views agree
        ([7, 8], [candidate(ONE_VIEW[0], 12, [5, 6])] * 4),  # one program, found four times
        ([7, 8], [candidate(text, 16, [5, 6]) for text in ONE_VIEW]),  # a view votes twice at most: 2 * 0.16 to 0.4
        ([7, 8], [candidate(OTHER_VIEW, 3, [5, 6], (False, False))] * 2),  # nothing is explained
    ],
)
def test_programs_of_different_views_vote_for_an_answer(first, others):
    found = [candidate(ONE_VIEW[1], 8, [7, 8]), *others]
    asked = np.array([[1, 2]], np.int8)
    best, second = likeliest(found, [(asked, asked[:, ::-1])] * 2, asked, 2)
    assert best.answer.tolist() == [first]
    assert second.answer.tolist() != [first]
