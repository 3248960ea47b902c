"""The NumPy reference, held to examples written by hand from the operation table.

Grids are rows of digits, padded to H x W = 4 x 5; selections are rows of `#` and `.`, padded with `.`.
"""

from dataclasses import replace

import numpy as np
import pytest
from reference import cases
from reference.canvas import Canvas, apply_operation, pad, similarity, start_canvas
from reference.episode import ReferenceEpisode

H, W = 4, 5
NOTHING = ""
MAX_INT = 2**31 - 1


def padded(text: str) -> np.ndarray:
    rows = [[-1 if cell == "." else int(cell) for cell in row] for row in text.split()]
    grid = np.full((H, W), -1, np.int8)
    if rows:
        grid[: len(rows), : len(rows[0])] = rows
    return grid


def mask(text: str) -> np.ndarray:
    selection = np.zeros((H, W), bool)
    for row, cells in enumerate(text.split()):
        for column, cell in enumerate(cells):
            selection[row, column] = cell == "#"
    return selection


def canvas(grid: str, selection: str = NOTHING, clipboard: str = NOTHING) -> Canvas:
    return replace(start_canvas(padded(grid)), selection=mask(selection), clipboard=padded(clipboard))


def check(before: Canvas, operation: int, selection: str, after: Canvas, pair_input: str = "7") -> None:
    result = apply_operation(before, operation, mask(selection), padded(pair_input))
    np.testing.assert_array_equal(result.grid, after.grid)
    assert (result.height, result.width) == (after.height, after.width)
    np.testing.assert_array_equal(result.clipboard, after.clipboard)
    np.testing.assert_array_equal(result.selection, after.selection)
    assert (result.grid.dtype, result.clipboard.dtype, result.selection.dtype) == (np.int8, np.int8, bool)


class TestFill:
    @pytest.mark.parametrize("color", range(10))
    def test_fill_colors_every_selected_cell(self, color):
        after = canvas(f"12{color} {color}56", selection="..# #..")
        check(canvas("123 456"), color, "..# #..", after)

    def test_fill_leaves_padding_alone_and_keeps_only_the_active_part_of_the_selection(self):
        check(canvas("12 34"), 5, ".### .### ####", canvas("15 35", selection=".# .#"))

    def test_fill_of_nothing_changes_not_even_the_selection(self):
        check(canvas("12 34", selection="#."), 5, NOTHING, canvas("12 34", selection="#."))

    def test_fill_of_padding_alone_changes_nothing(self):
        check(canvas("12 34", selection="#."), 5, "..# ..#", canvas("12 34", selection="#."))


class TestFloodFill:
    @pytest.mark.parametrize("color", range(10))
    def test_flood_fill_follows_a_corridor_to_its_end(self, color):
        before = canvas("11111 00001 11101 10001")
        after = canvas(f"{color * 11111:05d} 0000{color} 1110{color} 1000{color}", selection="#")
        check(before, 10 + color, "#", after)

    def test_flood_fill_does_not_pass_diagonally(self):
        check(canvas("212 121 212"), 13, "... .#.", canvas("212 131 212", selection="... .#."))

    def test_flood_fill_does_not_enter_equal_colors_behind_a_wall(self):
        check(canvas("121 121"), 15, "#..", canvas("521 521", selection="#.."))

    def test_flood_fill_of_color_zero_stops_at_the_active_area(self):
        check(canvas("00 00"), 16, ".#", canvas("66 66", selection=".#"))

    def test_flood_fill_with_the_same_color_only_selects(self):
        check(canvas("11 00", selection="..  .#"), 11, "#.", canvas("11 00", selection="#."))

    @pytest.mark.parametrize("selection", [NOTHING, "##", "..#"])
    def test_flood_fill_needs_exactly_one_active_cell(self, selection):
        check(canvas("11 11", selection=".. .#"), 15, selection, canvas("11 11", selection=".. .#"))

    def test_flood_fill_does_not_count_selected_padding(self):
        check(canvas("11 00"), 15, "#.## ..##", canvas("55 00", selection="#."))


class TestMove:
    @pytest.mark.parametrize(
        ("operation", "grid", "selection"),
        [
            (20, "153 406 789", ".#. ... ..."),
            (21, "123 406 759", "... ... .#."),
            (22, "123 506 789", "... #.. ..."),
            (23, "123 405 789", "... ..# ..."),
        ],
    )
    def test_move_of_one_cell_overwrites_its_neighbor_and_leaves_zero(self, operation, grid, selection):
        check(canvas("123 456 789"), operation, "... .#. ...", canvas(grid, selection=selection))

    @pytest.mark.parametrize(
        ("operation", "grid"), [(20, "456 000"), (21, "000 123"), (22, "230 560"), (23, "012 045")]
    )
    def test_move_of_an_empty_selection_moves_the_whole_area_and_selects_nothing(self, operation, grid):
        check(canvas("123 456", selection="#"), operation, NOTHING, canvas(grid))

    def test_move_loses_what_leaves_the_active_area_and_clips_the_selection(self):
        check(canvas("123 456"), 23, ".## .##", canvas("102 405", selection="..# ..#"))

    def test_move_of_neighbors_carries_their_content_along(self):
        check(canvas("123 456"), 22, ".## ...", canvas("230 456", selection="##. ..."))

    def test_move_moves_selected_cells_only_and_not_the_box(self):
        check(canvas("123 456 789"), 21, "#.. ..# ...", canvas("023 150 786", "... #.. ..#"))

    def test_move_carries_color_zero_as_an_opaque_color(self):
        check(canvas("05 67"), 23, "#. ..", canvas("00 67", selection=".# .."))

    def test_move_off_the_edge_leaves_nothing_selected(self):
        check(canvas("12 34"), 20, "## ..", canvas("00 34"))

    def test_move_never_writes_padding(self):
        check(canvas("12 34"), 21, ".. ##", canvas("12 00"))


class TestRotate:
    def test_rotate_clockwise_turns_a_square_box_in_place(self):
        check(canvas("129 349 999"), 24, "## ##", canvas("319 429 999", selection="## ##"))

    def test_rotate_counter_clockwise_turns_a_square_box_in_place(self):
        check(canvas("129 349 999"), 25, "## ##", canvas("249 139 999", selection="## ##"))

    def test_rotate_nonsquare_box_is_anchored_at_its_top_left(self):
        before = canvas("99999 91239 99999 99999")
        check(before, 24, "..... .###.", canvas("99999 91009 92999 93999", selection="..... .###."))
        check(before, 25, "..... .###.", canvas("99999 93009 92999 91999", selection="..... .###."))

    def test_rotate_of_an_upright_box_clears_the_cells_it_leaves(self):
        check(canvas("1299 3499 5699"), 24, "## ## ##", canvas("5319 6429 0099", selection="## ## ##"))
        check(canvas("1299 3499 5699"), 25, "## ## ##", canvas("2469 1359 0099", selection="## ## ##"))

    def test_rotate_loses_what_falls_outside_the_active_area(self):
        check(canvas("1234 5678"), 24, NOTHING, canvas("5100 6200"))
        check(canvas("1234 5678"), 25, NOTHING, canvas("4800 3700"))

    def test_rotate_turns_unselected_cells_of_the_box_too(self):
        check(canvas("12 34"), 24, "#. .#", canvas("31 42", selection="#. .#"))

    def test_rotate_of_one_cell_changes_nothing(self):
        check(canvas("12 34"), 25, ".#", canvas("12 34", selection=".#"))


class TestFlip:
    def test_flip_left_right_mirrors_the_columns_of_the_box(self):
        check(canvas("1234 5678"), 26, ".###", canvas("1432 5678", selection=".###"))

    def test_flip_up_down_mirrors_the_rows_of_the_box(self):
        check(canvas("12 34 56"), 27, "#. #. #.", canvas("52 34 16", selection="#. #. #."))

    def test_flip_of_an_empty_selection_mirrors_the_active_area(self):
        check(canvas("123 456", selection="#"), 26, NOTHING, canvas("321 654"))
        check(canvas("123 456", selection="#"), 27, NOTHING, canvas("456 123"))

    def test_flip_mirrors_unselected_cells_of_the_box_too(self):
        check(canvas("123 456"), 26, "#.. ..#", canvas("321 654", selection="#.. ..#"))


class TestClipboard:
    def test_copy_normalizes_to_the_origin_and_keeps_only_selected_cells(self):
        after = canvas("123 456 789", selection="... .#. ..#", clipboard="5. .9")
        check(canvas("123 456 789", clipboard="111 111"), 28, "... .#. ..#", after)

    def test_copy_holds_color_zero(self):
        check(canvas("10 00"), 28, ".#", canvas("10 00", selection=".#", clipboard="0"))

    def test_copy_of_nothing_keeps_the_clipboard(self):
        before = canvas("12", selection="#", clipboard="3")
        check(before, 28, NOTHING, before)
        check(before, 28, ".. ##", before)

    def test_paste_writes_at_the_top_left_of_the_selection_box(self):
        after = canvas("1111 1561 1781", selection=".... ..#. .#..", clipboard="56 78")
        check(canvas("1111 1111 1111", clipboard="56 78"), 29, ".... ..#. .#..", after)

    def test_paste_writes_held_cells_only_and_zero_is_opaque(self):
        check(canvas("111 111", clipboard="0. .5"), 29, "#", canvas("011 151", selection="#", clipboard="0. .5"))

    def test_paste_is_clipped_to_the_active_area(self):
        check(canvas("111 111", clipboard="56 78"), 29, "... ..#", canvas("111 115", "... ..#", "56 78"))

    def test_paste_where_every_held_cell_is_clipped_still_selects(self):
        after = canvas("11", selection=".#", clipboard=".5 5.")
        check(canvas("11", clipboard=".5 5."), 29, ".#", after)

    def test_paste_needs_a_selection_and_a_clipboard(self):
        without_clipboard = canvas("12", selection="#")
        check(without_clipboard, 29, ".#", without_clipboard)
        with_clipboard = canvas("12", selection="#", clipboard="5")
        check(with_clipboard, 29, NOTHING, with_clipboard)
        check(with_clipboard, 29, "..#", with_clipboard)

    def test_cut_copies_and_leaves_zero(self):
        check(canvas("123 456"), 30, ".#. .##", canvas("103 400", selection=".#. .##", clipboard="2. 56"))

    def test_cut_of_nothing_changes_nothing(self):
        before = canvas("12", selection="#", clipboard="3")
        check(before, 30, NOTHING, before)

    def test_clear_paints_the_selection_zero_and_keeps_the_clipboard(self):
        check(canvas("123 456", clipboard="7"), 31, "##. ..#", canvas("003 450", "##. ..#", "7"))

    def test_clear_of_an_empty_selection_clears_the_active_area(self):
        check(canvas("123 456", selection="#"), 31, NOTHING, canvas("000 000"))


class TestSize:
    def test_copy_input_takes_over_colors_and_size_and_keeps_the_clipboard(self):
        before = canvas("123 456", clipboard="9")
        check(before, 32, ".## ### ##.", canvas("12 34 56", ".# ## ..", "9"), pair_input="12 34 56")

    def test_resize_ends_at_the_bottom_right_of_the_raw_selection(self):
        check(canvas("12 34"), 33, ".... ..#. #...", canvas("120 340 000", selection="... ..# #.."))

    def test_resize_can_shrink(self):
        check(canvas("123 456 789"), 33, "... .#.", canvas("12 45", selection=".. .#"))

    def test_resize_can_grow_one_side_and_shrink_the_other(self):
        check(canvas("123 456"), 33, "... ... #..", canvas("1 4 0", selection=". . #"))

    def test_resize_does_not_bring_back_dropped_cells(self):
        small = apply_operation(canvas("12 34"), 33, mask("#"), padded("7"))
        check(small, 33, ".. .#", canvas("10 00", selection=".. .#"))

    def test_resize_reaches_the_padded_size(self):
        check(canvas("1"), 33, "..... ..... ..... ....#", canvas("10000 00000 00000 00000", "..... " * 3 + "....#"))

    def test_resize_by_nothing_changes_nothing(self):
        check(canvas("12 34", selection="#"), 33, NOTHING, canvas("12 34", selection="#"))

    def test_submit_leaves_the_grid(self):
        check(canvas("12 34", clipboard="5"), 34, ".## .##", canvas("12 34", selection=".# .#", clipboard="5"))

    def test_reset_pair_restores_the_input_and_clears_clipboard_and_selection(self):
        check(canvas("123 456", selection="#", clipboard="9"), 39, "##", canvas("1 2"), pair_input="1 2")

    @pytest.mark.parametrize("operation", [-1, 35, 38, 40, 42])
    def test_other_operations_do_not_edit_a_canvas(self, operation):
        with pytest.raises(ValueError, match=f"operation {operation} is not an editing operation"):
            apply_operation(canvas("1"), operation, mask("#"), padded("1"))


class TestSimilarity:
    @pytest.mark.parametrize(
        ("grid", "target", "expected"),
        [
            ("12 34", "12 34", (4, 4)),
            ("12 34", "12 35", (3, 4)),
            ("12 34", "12", (2, 4)),
            ("12", "12 34", (2, 4)),
            ("0", "00 00", (1, 4)),
            ("111", "1 1 1", (1, 9)),
            ("1", "2", (0, 1)),
        ],
    )
    def test_similarity_counts_matches_over_the_union_of_the_active_areas(self, grid, target, expected):
        assert similarity(padded(grid), padded(target)) == expected


PAIRS = [(padded(grid), padded(target)) for grid, target in [("12 34", "52 34"), ("000", "600"), ("8", "8 8")]]
TESTS = [(padded("11"), padded("91")), (padded("22"), padded("29"))]
SOLVE = [(5, ("point", (0, 0))), (6, ("point", (0, 0))), (33, ("point", (1, 0)))]  # the edit that solves each pair
SUBMIT = (34, ("point", (0, 0)))


def episode(pair_index: int = 0, **rules) -> ReferenceEpisode:
    return ReferenceEpisode(PAIRS, TESTS, H, W, pair_index, **rules)


def after(started: ReferenceEpisode, *actions: tuple) -> ReferenceEpisode:
    for action in actions:
        started.step(*action)
    return started


def state(e: ReferenceEpisode) -> tuple:
    arrays = (e.grid.tolist(), e.clipboard.tolist(), e.selection.tolist(), e.target.tolist())
    counts = (e.height, e.width, e.pair_index, e.step_count, e.submission_count, frozenset(e.solved_pairs))
    return (*arrays, *counts, float(e.similarity), e.terminated, e.truncated)


class TestEpisodeStart:
    def test_episode_starts_at_the_input_of_its_pair(self):
        e = episode(1)
        np.testing.assert_array_equal(e.grid, padded("000"))
        np.testing.assert_array_equal(e.target, padded("600"))
        assert (e.height, e.width, e.step_count, e.submission_count) == (1, 3, 0, 0)
        assert not e.selection.any()
        assert (e.clipboard == -1).all()
        assert e.similarity == np.float32(2) / np.float32(3)
        assert not e.done

    def test_test_mode_starts_on_a_test_pair(self):
        np.testing.assert_array_equal(episode(1, mode="test").grid, padded("22"))

    def test_unpadded_pairs_are_padded(self):
        e = ReferenceEpisode([(np.array([[1, 2]]), np.array([[3]]))], [], H, W)
        np.testing.assert_array_equal(e.grid, padded("12"))
        np.testing.assert_array_equal(e.target, pad(np.array([[3]]), H, W))

    @pytest.mark.parametrize("rules", [{"mode": "play"}, {"invalid_action_policy": "ignore"}, {"pair_index": 3}])
    def test_unknown_rules_raise(self, rules):
        with pytest.raises(ValueError, match=next(iter(rules))):
            episode(**rules)


class TestActions:
    def test_box_takes_corners_in_either_order(self):
        selections = [
            after(episode(), (0, ("bbox", corners))).selection
            for corners in [(0, 0, 1, 1), (1, 1, 0, 0), (1, 0, 0, 1), (0, 1, 1, 0)]
        ]
        for selection in selections:
            np.testing.assert_array_equal(selection, mask("## ##"))

    def test_mask_selects_its_cells(self):
        np.testing.assert_array_equal(after(episode(), (9, ("mask", mask(".# #.")))).grid, padded("19 94"))

    def test_mask_of_another_shape_raises(self):
        with pytest.raises(ValueError, match="mask has shape"):
            after(episode(), (9, ("mask", np.ones((2, 2), bool))))

    @pytest.mark.parametrize("operation", [-1, 42, 76, MAX_INT, -MAX_INT])
    @pytest.mark.parametrize("policy", ["noop", "clip"])
    def test_operation_outside_the_table_is_never_carried_out(self, operation, policy):
        rules = {"invalid_action_policy": policy, "invalid_action_penalty": -0.5, "step_penalty": -0.25}
        started = after(episode(**rules), (3, ("point", (0, 1))))
        before = state(started)
        e = after(started, (operation, ("point", (0, 0))))
        assert e.invalid_action
        assert e.reward == np.float32(-0.75)
        assert e.step_count == 2
        e.step_count = 1
        assert state(e) == before

    @pytest.mark.parametrize("spec", [("point", (H, 0)), ("point", (0, -1)), ("bbox", (0, 0, 0, W))])
    @pytest.mark.parametrize("operation", [5, 34, 39])
    def test_noop_ignores_an_action_with_a_coordinate_outside(self, operation, spec):
        e = after(episode(invalid_action_penalty=-0.5), (operation, spec))
        assert e.invalid_action
        assert (e.reward, e.step_count, e.submission_count) == (np.float32(-0.5), 1, 0)
        np.testing.assert_array_equal(e.grid, padded("12 34"))

    @pytest.mark.parametrize(
        ("spec", "selection"),
        [
            (("point", (-3, MAX_INT)), "....#"),
            (("point", (H, -1)), "..... ..... ..... #...."),
            (("bbox", (1, 7, -9, 3)), "...## ...##"),
        ],
    )
    def test_clip_moves_coordinates_to_the_nearest_valid_value(self, spec, selection):
        e = after(episode(invalid_action_policy="clip", invalid_action_penalty=-0.5), (33, spec))
        np.testing.assert_array_equal(e.selection, mask(selection))
        assert not e.invalid_action

    def test_an_action_at_the_last_row_and_column_is_valid(self):
        e = after(episode(), (33, ("point", (H - 1, W - 1))))
        assert not e.invalid_action
        assert (e.height, e.width) == (H, W)

    @pytest.mark.parametrize(
        ("action", "message"),
        [
            ((42, ("point", (0, 0))), r"operation is 42; allowed: 0\.\.41"),
            ((35, ("point", (0, 0))), "operation is 35, which this episode does not allow"),
            ((0, ("point", (4, 0))), r"row is 4; allowed: 0\.\.3"),
            ((0, ("bbox", (0, 0, 0, -1))), r"column is -1; allowed: 0\.\.4"),
        ],
    )
    def test_raise_names_field_value_and_range_and_does_not_step(self, action, message):
        e = episode(invalid_action_policy="raise")
        with pytest.raises(ValueError, match=message):
            e.step(*action)
        assert e.step_count == 0

    @pytest.mark.parametrize(
        ("rules", "illegal"),
        [
            ({}, {35, 36, 37, 38, 40, 41}),
            ({"allow_demo_switching": True, "allow_test_switching": True}, {37, 38, 41}),
            ({"mode": "test"}, {35, 36, 37, 38, 40, 41}),
            ({"mode": "test", "allow_demo_switching": True, "allow_test_switching": True}, {35, 36, 40}),
            ({"allowed_operations": (0, 34, 35)}, set(range(42)) - {0, 34}),
        ],
    )
    def test_legal_operations_follow_mode_switches_and_the_allowed_list(self, rules, illegal):
        assert set(np.nonzero(~episode(**rules).legal_operations())[0].tolist()) == illegal

    @pytest.mark.parametrize("policy", ["noop", "clip"])
    def test_illegal_operation_changes_nothing_and_is_penalized(self, policy):
        rules = {"allowed_operations": (0,), "invalid_action_penalty": -0.5, "invalid_action_policy": policy}
        e = after(episode(**rules), SUBMIT)
        assert e.invalid_action
        assert (e.reward, e.submission_count, e.terminated) == (np.float32(-0.5), 0, False)

    def test_operation_that_cannot_apply_is_not_invalid_but_counts_as_a_step(self):
        e = after(episode(), (29, ("point", (0, 0))))
        assert not e.invalid_action
        assert e.step_count == 1
        assert not e.selection.any()


class TestPairs:
    @pytest.mark.parametrize(("operation", "visited"), [(35, [1, 2, 0]), (36, [2, 1, 0])])
    def test_demonstration_pairs_wrap(self, operation, visited):
        e = episode(allow_demo_switching=True)
        for pair_index in visited:
            after(e, (28, ("point", (0, 0))), (operation, ("point", (0, 0))))
            assert e.pair_index == pair_index
            np.testing.assert_array_equal(e.grid, PAIRS[pair_index][0])
            np.testing.assert_array_equal(e.target, PAIRS[pair_index][1])
            assert (e.clipboard == -1).all()
            assert not e.selection.any()

    @pytest.mark.parametrize("operation", [37, 38])
    def test_test_pairs_wrap(self, operation):
        e = after(episode(mode="test", allow_test_switching=True), (operation, ("point", (0, 0))))
        assert e.pair_index == 1
        assert after(e, (operation, ("point", (0, 0)))).pair_index == 0

    def test_reset_pair_restores_the_current_pair(self):
        e = after(episode(1), (28, ("point", (0, 0))), (5, ("point", (0, 2))), (39, ("point", (0, 0))))
        np.testing.assert_array_equal(e.grid, padded("000"))
        assert (e.clipboard == -1).all()
        assert not e.selection.any()
        assert e.step_count == 3

    def test_first_unsolved_goes_to_the_lowest_numbered_pair_left(self):
        e = episode(1, allow_demo_switching=True, max_submissions=9)
        assert after(e, (40, ("point", (0, 0)))).pair_index == 0
        after(e, SOLVE[0], SUBMIT)
        assert e.pair_index == 0
        assert after(e, (40, ("point", (0, 0)))).pair_index == 1

    def test_first_unsolved_test_pair(self):
        e = after(episode(1, mode="test", allow_test_switching=True), (41, ("point", (0, 0))))
        assert e.pair_index == 0

    def test_first_unsolved_may_be_the_current_pair_and_starts_it_anew(self):
        e = after(episode(0, allow_demo_switching=True), (7, ("point", (1, 1))), (40, ("point", (0, 0))))
        np.testing.assert_array_equal(e.grid, padded("12 34"))

    def test_first_unsolved_with_every_pair_solved_changes_nothing(self):
        e = after(episode(0, allow_demo_switching=True), (7, ("point", (1, 1))))
        e.solved_pairs = {0, 1, 2}
        after(e, (40, ("point", (0, 0))))
        np.testing.assert_array_equal(e.grid, padded("12 37"))
        np.testing.assert_array_equal(e.selection, mask(".. .#"))
        assert not e.invalid_action

    def test_similarity_after_a_switch_is_that_of_the_new_pair(self):
        e = after(episode(allow_demo_switching=True), (35, ("point", (0, 0))))
        assert e.similarity == np.float32(2) / np.float32(3)


class TestEndings:
    def test_reaching_the_target_without_submitting_is_not_solved(self):
        e = after(episode(), SOLVE[0])
        assert e.similarity == 1
        assert not e.solved
        assert not e.done

    def test_solving_submit_terminates(self):
        e = after(episode(max_submissions=5), SOLVE[0], SUBMIT)
        assert e.solved
        assert (e.terminated, e.truncated, e.done, e.discount) == (True, False, True, 0)
        assert (e.submission_count, e.solved_pairs) == (1, {0})

    def test_equal_colors_in_another_size_are_not_solved(self):
        e = after(episode(2), SUBMIT)
        assert not e.solved

    def test_last_submission_terminates_without_solving(self):
        e = after(episode(max_submissions=2), SUBMIT)
        assert (e.submission_count, e.terminated, e.discount) == (1, False, 1)
        after(e, SUBMIT)
        assert (e.submission_count, e.terminated, e.solved) == (2, True, False)

    def test_step_limit_truncates(self):
        e = after(episode(max_episode_steps=2), (0, ("point", (0, 0))))
        assert not e.done
        after(e, (99, ("point", (0, 0))))
        assert (e.terminated, e.truncated, e.done, e.discount) == (False, True, True, 1)

    def test_last_submit_at_the_step_limit_terminates_and_does_not_truncate(self):
        e = after(episode(max_episode_steps=1), SUBMIT)
        assert (e.terminated, e.truncated) == (True, False)

    def test_done_state_does_not_change_and_pays_nothing(self):
        e = after(episode(step_penalty=-1, invalid_action_penalty=-1), SOLVE[0], SUBMIT)
        before = state(e)
        for action in [(3, ("point", (0, 0))), SUBMIT, (77, ("point", (-1, 0)))]:
            after(e, action)
            assert state(e) == before
            assert e.reward == 0

    def test_with_switching_the_last_pair_to_be_solved_terminates(self):
        e = episode(allow_demo_switching=True, max_submissions=9)
        go_on = (40, ("point", (0, 0)))
        after(e, SOLVE[0], SUBMIT, go_on, SOLVE[1], SUBMIT)
        assert (e.solved_pairs, e.terminated) == ({0, 1}, False)
        after(e, go_on, SOLVE[2], (8, ("point", (1, 0))), SUBMIT)
        assert (e.solved_pairs, e.terminated) == ({0, 1, 2}, True)

    def test_with_test_switching_every_test_pair_is_to_be_solved(self):
        e = episode(mode="test", allow_test_switching=True, max_submissions=9, score_on_submit=True)
        after(e, (9, ("point", (0, 0))), SUBMIT)
        assert (e.solved_pairs, e.terminated) == ({0}, False)
        after(e, (41, ("point", (0, 0))), (9, ("point", (0, 1))), SUBMIT)
        assert (e.solved_pairs, e.terminated) == ({0, 1}, True)

    def test_an_unscored_submit_does_not_show_by_its_ending_that_it_was_right(self):
        e = episode(mode="test", max_submissions=2)
        after(e, (9, ("point", (0, 0))), SUBMIT)
        assert (e.solved_pairs, e.terminated) == ({0}, False)
        assert after(e, SUBMIT).terminated

    def test_switching_of_the_other_mode_does_not_ask_for_every_pair(self):
        assert after(episode(allow_test_switching=True, max_submissions=9), SOLVE[0], SUBMIT).terminated


class TestReward:
    WEIGHTS = {  # noqa: RUF012
        "similarity_weight": 2.0,
        "step_penalty": -0.125,
        "success_bonus": 8.0,
        "unsolved_submission_penalty": -1.0,
        "invalid_action_penalty": -0.5,
    }

    def test_train_reward_pays_the_change_of_similarity(self):
        e = after(episode(**self.WEIGHTS), (5, ("point", (0, 0))))
        assert e.reward == np.float32(2 * 0.25 - 0.125)
        assert e.reward.dtype == np.float32

    def test_gamma_discounts_the_new_similarity_only(self):
        e = after(episode(gamma=0.5, **self.WEIGHTS), (5, ("point", (0, 0))))
        assert e.reward == np.float32(2 * (0.5 * 1 - 0.75) - 0.125)

    def test_invalid_action_pays_shaping_of_an_unchanged_grid_and_the_penalty(self):
        e = after(episode(gamma=0.5, **self.WEIGHTS), (42, ("point", (0, 0))))
        assert e.reward == np.float32(2 * (0.5 * 0.75 - 0.75) - 0.125 - 0.5)

    def test_solving_submit_pays_the_bonus(self):
        assert after(episode(**self.WEIGHTS), SOLVE[0], SUBMIT).reward == np.float32(8 - 0.125)

    def test_wrong_submit_pays_the_penalty(self):
        assert after(episode(**self.WEIGHTS), SUBMIT).reward == np.float32(-1 - 0.125)

    def test_second_solving_submit_of_a_pair_pays_neither_bonus_nor_penalty(self):
        e = after(episode(allow_demo_switching=True, max_submissions=9, **self.WEIGHTS), SOLVE[0], SUBMIT, SUBMIT)
        assert e.solved
        assert e.submission_count == 2
        assert e.reward == np.float32(-0.125)

    @pytest.mark.parametrize("operation", [35, 36, 39, 40])
    def test_pair_operations_pay_the_change_of_similarity(self, operation):
        rules = {"allow_demo_switching": True, "gamma": 0.5, **self.WEIGHTS}
        e = after(episode(**rules), SOLVE[0], (operation, ("point", (0, 0))))
        assert e.similarity < 1
        assert e.reward == np.float32(2 * (0.5 * e.similarity - 1) - 0.125)

    def test_illegal_pair_operation_pays_like_any_invalid_action(self):
        e = after(episode(gamma=0.5, **self.WEIGHTS), (35, ("point", (0, 0))))
        assert e.reward == np.float32(2 * (0.5 * 0.75 - 0.75) - 0.125 - 0.5)

    def test_first_unsolved_with_every_pair_solved_pays_shaping_of_an_unchanged_grid(self):
        e = episode(allow_demo_switching=True, gamma=0.5, **self.WEIGHTS)
        e.solved_pairs = {0, 1, 2}
        assert after(e, (40, ("point", (0, 0)))).reward == np.float32(2 * (0.5 * 0.75 - 0.75) - 0.125)

    def test_test_reward_ignores_the_target(self):
        e = episode(mode="test", **self.WEIGHTS)
        assert after(e, (9, ("point", (0, 0)))).reward == np.float32(-0.125)
        assert after(e, (42, ("point", (0, 0)))).reward == np.float32(-0.125 - 0.5)
        assert after(e, SUBMIT).reward == np.float32(-0.125)
        assert e.solved

    @pytest.mark.parametrize(("color", "score"), [(9, 8), (3, -1)])
    def test_test_reward_scores_the_submit_when_asked(self, color, score):
        e = after(episode(mode="test", score_on_submit=True, **self.WEIGHTS), (color, ("point", (0, 0))))
        assert e.reward == np.float32(-0.125)
        assert after(e, SUBMIT).reward == np.float32(score - 0.125)


class TestCases:
    @pytest.mark.parametrize("size", [(1, 1), (1, 6), (5, 1), (7, 4), (12, 12)])
    def test_cases_and_their_outcomes_keep_the_invariants_of_a_canvas(self, size):
        drawn = cases.random_cases(np.random.default_rng(0), 300, *size)
        for index in range(300):
            before = drawn.canvas(index)
            inputs = int(drawn.operation[index]), drawn.selection[index], drawn.pair_input[index]
            for canvas_ in (before, apply_operation(before, *inputs)):
                inside = np.zeros(size, bool)
                inside[: canvas_.height, : canvas_.width] = True
                np.testing.assert_array_equal(canvas_.grid >= 0, inside)
                assert not (canvas_.selection & ~inside).any()
                held = canvas_.clipboard >= 0
                assert not held.any() or (held[0].any() and held[:, 0].any())

    def test_the_same_seed_draws_the_same_cases(self):
        first, second = (cases.random_cases(np.random.default_rng(7), 20, 5, 6) for _ in range(2))
        for one, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(one, other)

    def test_cases_reach_every_operation_and_many_large_floods(self):
        drawn = cases.random_cases(np.random.default_rng(1), 2000, 10, 10)
        assert set(drawn.operation.tolist()) == set(cases.EDITING_OPERATIONS)
        flooded = [
            (apply_operation(drawn.canvas(i), 10, drawn.selection[i], drawn.pair_input[i]).grid != drawn.grid[i]).sum()
            for i in np.nonzero((drawn.operation >= 10) & (drawn.operation <= 19))[0]
        ]
        assert sum(count >= 30 for count in flooded) > 30

    def test_action_generators_draw_both_valid_and_invalid_actions(self):
        rng = np.random.default_rng(2)
        points, boxes = cases.random_points(rng, 500, 4, 5), cases.random_boxes(rng, 500, 4, 5)
        operations, masks = cases.random_operations(rng, 500), cases.random_masks(rng, 50, 4, 5)
        valid = ((0 <= boxes) & (boxes < [4, 5, 4, 5])).all(axis=1)
        assert valid.any()
        assert not valid.all()
        assert (boxes[valid][:, 0] > boxes[valid][:, 2]).any()
        assert points.shape == (500, 2)
        assert set(range(42)) < set(operations.tolist())
        assert masks.shape == (50, 4, 5)

    @pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 3), (1, 8), (9, 2), (30, 30)])
    def test_spirals_and_serpentines_are_one_corridor(self, size):
        for pattern in (cases._spiral(*size), cases._serpentine(*size)):
            grid = pattern.astype(np.int8)
            start = np.zeros(size, bool)
            start[0, 0] = True
            flooded = apply_operation(start_canvas(grid), 15, start, grid)
            np.testing.assert_array_equal(flooded.grid == 5, pattern)
