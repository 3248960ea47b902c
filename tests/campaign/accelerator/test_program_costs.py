"""Launches, loops and bytes are read off the text of a compiled program, and a rise of them is found."""

import dataclasses

import pytest

from campaign.accelerator.check import TARGETS, facts_of, missed, worse
from campaign.accelerator.program_costs import LAUNCH_SECONDS, OPEN_TURNS, costs_of
from campaign.accelerator.programs import Program, programs

TEXT = """HloModule jit_roll, is_scheduled=true

%fused_slice (param_0: s8[64,900], param_1: s32[]) -> s8[1,900] {
  %param_0 = s8[64,900]{1,0} parameter(0)
  %param_1 = s32[] parameter(1)
  %bitcast.1 = s8[64,900]{1,0} bitcast(%param_0)
  ROOT %slice.1 = s8[1,900]{1,0} dynamic-slice(%bitcast.1, %param_1, %param_1), dynamic_slice_sizes={1,900}
}

%fused_update (param_0.2: f32[64], param_1.2: f32[1], param_2.2: s32[]) -> f32[64] {
  %param_0.2 = f32[64]{0} parameter(0)
  %param_1.2 = f32[1]{0} parameter(1)
  %param_2.2 = s32[] parameter(2)
  ROOT %update.1 = f32[64]{0} dynamic-update-slice(%param_0.2, %param_1.2, %param_2.2)
}

%fused_add (param_0.3: u32[30,8]) -> (u32[30,8], pred[8]) {
  %param_0.3 = u32[30,8]{1,0} parameter(0)
  %add.1 = u32[30,8]{1,0} add(%param_0.3, %param_0.3)
  %less.1 = pred[8]{0} custom-call(%add.1), custom_call_target="none"
  ROOT %tuple.1 = (u32[30,8]{1,0}, pred[8]{0}) tuple(%add.1, %less.1)
}

%flood_body (arg.1: (u32[30,8], pred[])) -> (u32[30,8], pred[]) {
  %arg.1 = (u32[30,8]{1,0}, pred[]) parameter(0)
  %words.1 = u32[30,8]{1,0} get-tuple-element(%arg.1), index=0
  %sweep.1 = (u32[30,8]{1,0}, pred[8]{0}) fusion(%words.1), kind=kLoop, calls=%fused_add
  %word.2 = u32[30,8]{1,0} get-tuple-element(%sweep.1), index=0
  %flag.1 = pred[] custom-call(%word.2), custom_call_target="any"
  ROOT %next.1 = (u32[30,8]{1,0}, pred[]) tuple(%word.2, %flag.1)
}

%flood_condition (arg.2: (u32[30,8], pred[])) -> pred[] {
  %arg.2 = (u32[30,8]{1,0}, pred[]) parameter(0)
  ROOT %goes_on.1 = pred[] get-tuple-element(%arg.2), index=1
}

%step_body (arg.3: (s8[64,900], f32[64], u32[30,8], s32[])) -> (s8[64,900], f32[64], u32[30,8], s32[]) {
  %arg.3 = (s8[64,900]{1,0}, f32[64]{0}, u32[30,8]{1,0}, s32[]) parameter(0)
  %grids.1 = s8[64,900]{1,0} get-tuple-element(%arg.3), index=0
  %sums.1 = f32[64]{0} get-tuple-element(%arg.3), index=1
  %words.3 = u32[30,8]{1,0} get-tuple-element(%arg.3), index=2
  %turn.1 = s32[] get-tuple-element(%arg.3), index=3
  %one.1 = f32[1]{0} constant({1})
  %picked.1 = s8[1,900]{1,0} fusion(%grids.1, %turn.1), kind=kLoop, calls=%fused_slice
  %kept.1 = f32[64]{0} fusion(%sums.1, %one.1, %turn.1), kind=kLoop, calls=%fused_update
  %start.1 = (u32[30,8]{1,0}, pred[]) tuple(%words.3)
  %flood.1 = (u32[30,8]{1,0}, pred[]) while(%start.1), condition=%flood_condition, body=%flood_body
  ROOT %out.1 = (s8[64,900]{1,0}, f32[64]{0}, u32[30,8]{1,0}, s32[]) tuple(%grids.1, %kept.1, %words.3, %turn.1)
}

%step_condition (arg.4: (s8[64,900], f32[64], u32[30,8], s32[])) -> pred[] {
  %arg.4 = (s8[64,900]{1,0}, f32[64]{0}, u32[30,8]{1,0}, s32[]) parameter(0)
  %turn.2 = s32[] get-tuple-element(%arg.4), index=3
  ROOT %less.2 = pred[] compare(%turn.2, %turn.2), direction=LT
}

ENTRY %main (p: (s8[64,900], f32[64], u32[30,8], s32[])) -> (s8[64,900], f32[64], u32[30,8], s32[]) {
  %p = (s8[64,900]{1,0}, f32[64]{0}, u32[30,8]{1,0}, s32[]) parameter(0)
  ROOT %steps.1 = (s8[64,900]{1,0}, f32[64]{0}, u32[30,8]{1,0}, s32[]) while(%p), HOW
}
""".replace("HOW", 'condition=%step_condition, body=%step_body, backend_config={"known_trip_count":{"n":"64"}}')
WORDS = 30 * 8 * 4  # bytes
TURN = (2 * WORDS + 8) + (WORDS + 1)  # a sweep reads and writes the words and flags, a test reads them
PICK = 2 * 900 + 4  # a slice of 900 bytes, read and written, and where it is
KEEP = 4 + 4 + 4  # one number, read and written, and where


def test_launches_loops_and_bytes_of_a_step():
    step = costs_of(TEXT).longest_loop()
    assert (step.launches, step.num_bytes) == (2, PICK + KEEP)
    (flood,) = step.open_loops()
    assert (flood.turn.launches, flood.turn.num_bytes) == (2, TURN)
    assert step.total_launches() == 2 + 2 * OPEN_TURNS
    assert step.total_bytes(open_turns=5) == PICK + KEEP + 5 * TURN


def test_the_whole_program_takes_all_turns():
    program = costs_of(TEXT)
    assert program.launches == 0
    assert program.total_launches(open_turns=0) == 64 * 2
    launching, moving = program.bound_seconds(1e9)
    assert launching == pytest.approx(64 * (2 + 2 * OPEN_TURNS) * LAUNCH_SECONDS)
    assert moving == pytest.approx(64 * (PICK + KEEP + OPEN_TURNS * TURN) / 1e9)


def test_what_a_tpu_keeps_in_fast_memory_moves_no_bytes():
    here = costs_of(TEXT).longest_loop().num_bytes
    in_fast_memory = TEXT.replace("s8[1,900]{1,0}", "s8[1,900]{1,0:T(8,128)S(1)}")
    assert costs_of(in_fast_memory).longest_loop().num_bytes == here - 2 * 900
    brought = "(s8[64,900]{1,0:S(1)}, s8[64,900]{1,0}, u32[]) copy-start(%grids.1)\n  %picked.1 = "
    with_copy = TEXT.replace("%picked.1 = ", f"%brought.1 = {brought}", 1)
    assert costs_of(with_copy).longest_loop().num_bytes == here + 64 * 900


def test_a_text_that_is_no_program_is_refused():
    with pytest.raises(ValueError, match="ENTRY"):
        costs_of("HloModule nothing")


def rows(launches=None):
    program = Program("rollout-bbox-30", "a step", 8, True, lambda: (None, (), {}))
    costs = costs_of(TEXT)
    if launches is not None:
        (steps,) = costs.loops
        turn = dataclasses.replace(steps.turn, launches=launches)
        costs = dataclasses.replace(costs, loops=(dataclasses.replace(steps, turn=turn),))
    return {program.name: facts_of(program, costs, 800, 1.0)}


def test_more_launches_than_before_are_found_and_so_is_a_missed_target():
    before = rows()
    assert worse(before, before) == missed(before) == []
    most = TARGETS["rollout-bbox-30"]["launches"]
    after = rows(launches=most + 1)
    assert len(worse(after, before)) == 1
    assert f"launches is {most + 1 + 2 * OPEN_TURNS}" in missed(after)[0]
    assert worse(before, after) == []


def test_targets_are_of_programs_that_are_compiled():
    assert set(TARGETS) <= {program.name for program in programs()}
