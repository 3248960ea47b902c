"""The files whose mutants are tried, and the tests that try them, the quickest first."""

from typing import Final

_FAMILIES: Final = "tests/envs/test_operation_families.py"
_ALL: Final = tuple(
    f"{_FAMILIES}::test_a_plan_of_one_family_agrees_with_the_reference[{kind}-all]" for kind in ("mask", "bbox")
)
_CELLS: Final = "tests/envs/test_cells_and_boxes.py"
_ACCELERATOR_CELLS: Final = "tests/envs/test_accelerator_form.py::test_cells_of_columns_have_the_bits_of_a_cpu"
_SINGLE: Final = f"{_FAMILIES}::test_a_single_canvas_agrees_with_the_reference"
_NESTED: Final = f"{_FAMILIES}::test_every_canvas_may_load_from_a_table_of_its_own"
_COMPACTION: Final = "tests/envs/test_compaction.py"
_COMPILATION: Final = tuple(  # all but the one that starts a process
    f"tests/envs/test_compilation.py::{name}"
    for name in (
        "test_a_call_that_fails_while_it_runs_is_not_run_again",
        "test_running_out_of_memory_is_raised_as_it_is",
        "test_a_call_with_an_argument_of_another_kind_says_what_is_wrong_with_it",
        "test_a_call_with_arrays_does_not_go_through_filter_jit",
        "test_an_error_mode_leaves_programs_of_the_user_compiled",
        "test_an_error_mode_holds_from_the_next_call_on",
    )
)
_PRINTED: Final = (
    "tests/envs/test_environment_surface.py::test_an_action_prints_its_operation_and_its_cells",
    "tests/envs/test_environment_surface.py::test_batches_and_traced_values_print_their_shapes",
)
_CHECKED: Final = "tests/envs/test_checked_actions.py"
_MASKS: Final = "tests/envs/test_action_masks.py"
_BAD_INPUT: Final = "tests/envs/test_bad_input.py"
_EPISODES: Final = "tests/envs/test_fuzz_episodes.py"
_SCORES: Final = (
    "tests/evaluation/test_score_numbers.py",
    "tests/evaluation/test_submission_files.py",
    "tests/evaluation/test_majority_vote.py",
)
_TRANSITION: Final = (
    "tests/envs/test_scoring.py",
    f"{_BAD_INPUT}::test_state_of_another_config_is_refused",
    f"{_BAD_INPUT}::test_a_batch_given_to_the_step_of_one_environment_is_refused",
    *(
        f"{_EPISODES}::test_episodes_agree_with_the_reference[{rules}]"
        for rules in ("few operations", "switching hidden tests", "switching tests", "bbox, several submits", "test")
    ),
    "tests/wrappers/test_trials.py::test_trials_go_through_demonstrations_and_end_with_a_test",
    "tests/wrappers/test_trials.py::test_a_trial_pays_as_its_mode_does",
    "tests/wrappers/test_trials.py::test_a_right_submit_ends_a_trial_though_others_are_left",
    "tests/envs/test_properties.py::test_nothing_happens_after_the_end",
)

TARGETS: Final[dict[str, tuple[str, ...]]] = {
    "envs/canvas.py": (_CELLS, "tests/envs/test_scoring.py", _ACCELERATOR_CELLS),
    "envs/batch_rule.py": (*_ALL, _SINGLE, _NESTED, "tests/envs/test_native_rollouts.py"),
    "envs/compilation.py": (*_COMPILATION, _COMPACTION, *_ALL, _SINGLE, _NESTED),
    "envs/operations/execute.py": (
        *_ALL,
        _FAMILIES,
        "-k",
        "all or fill or shift or one_operation or single or own or recolored or statics_know or not_compiled",
    ),
    "envs/operations/flood.py": (*_ALL, _FAMILIES, "-k", "all or flood or single"),
    "envs/operations/kernels.py": (*_ALL, _FAMILIES, "-k", "all or flood or shift or turn or paste or single"),
    "envs/structured_actions.py": (
        f"{_BAD_INPUT}::test_unknown_operation_has_no_name",
        f"{_BAD_INPUT}::test_mask_of_another_shape_is_refused",
        *(
            f"tests/envs/test_guide_snippets.py::test_{what}"
            for what in ("point_selects_one_cell", "bbox_selects_twenty_five_cells")
        ),
        *_PRINTED,
        _CHECKED,
        _CELLS,
        *_ALL,
    ),
    "envs/action_masks.py": (_MASKS, "tests/wrappers/test_flat_actions.py"),
    "envs/transition.py": _TRANSITION,
    "evaluation/submission.py": _SCORES,
}
