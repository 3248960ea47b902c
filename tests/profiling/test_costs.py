"""Costs by operation: sums of a trace, kernels apart from what contains them, each with its source."""

import os
import re

import jax
import jax.numpy as jnp
import pytest
from jax.profiler import ProfileData

from jaxarc.profiling import costliest_operations, trace

TEXT = """HloModule jit_f, is_scheduled=true

FileNames
1 "/somewhere/model.py"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=9}
2 {file_name_id=1 function_name_id=1 line=31 end_line=31 column=1 end_column=9}

StackFrames
4 {file_location_id=2 parent_frame_id=1}

%fused (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0), metadata={op_name="x"}
  ROOT %add.1 = f32[4]{0} add(%p, %p), metadata={op_name="jit(f)/while/body/add" stack_frame_id=4}
}

%copied (q: f32[4]) -> f32[4] {
  %q = f32[4]{0} parameter(0), metadata={op_name="x"}
  ROOT %copy.1 = f32[4]{0} copy(%q)
}

%body (c: (s32[], f32[4])) -> (s32[], f32[4]) {
  %c = (s32[], f32[4]{0}) parameter(0)
  %wrapped_add = f32[4]{0} fusion(%c), kind=kLoop, calls=%fused
  ROOT %small = (s32[], f32[4]{0}) call(%c), to_apply=%tiny, metadata={op_name="jit(f)/while/body/cond"}
}

%tiny (t: (s32[], f32[4])) -> (s32[], f32[4]) {
  %t = (s32[], f32[4]{0}) parameter(0)
  ROOT %inlined = (s32[], f32[4]{0}) while(%t), condition=%never, body=%never
}

ENTRY %main (x: f32[4]) -> (s32[], f32[4]) {
  %x = f32[4]{0} parameter(0)
  %sort.0 = f32[4]{0} sort(%x), dimensions={0}, metadata={op_name="jit(f)/sort" source_file="/a/b.py" source_line=3}
  %unknown = f32[4]{0} fusion(%x), kind=kLoop, calls=%copied
  ROOT %while.5 = (s32[], /*index=1*/f32[4]{0}) while(%unknown), body=%body, metadata={op_name="jit(f)/while"}
}
"""
UNITS_PER_MICROSECOND = 1_000_000  # picoseconds


def write_trace(folder, events, plane="/host:CPU", name="one.xplane.pb"):
    """Write a trace of ``(operation, microseconds, module, program)`` events; module None leaves the statistics out."""
    metadata = "".join(
        f'stat_metadata {{ key: {i} value {{ id: {i} name: "{stat}" }} }}\n'
        for i, stat in enumerate(["hlo_op", "hlo_module", "program_id"], 1)
    )
    lines = []
    for i, (operation, microseconds, module, program) in enumerate(events, 1):
        label = "kernel" if module else operation
        metadata += f'event_metadata {{ key: {i} value {{ id: {i} name: "{label}" }} }}\n'
        stats = f"""stats {{ metadata_id: 1 str_value: "{operation}" }} stats {{ metadata_id: 2 str_value: "{module}" }}
                    stats {{ metadata_id: 3 int64_value: {program} }}"""
        duration = microseconds * UNITS_PER_MICROSECOND
        lines.append(f"events {{ metadata_id: {i} duration_ps: {duration} {stats if module else ''} }}")
    text = f'planes {{ name: "{plane}"\n {metadata} lines {{ name: "stream" {" ".join(lines)} }} }}'
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(ProfileData.text_proto_to_serialized_xspace(text))
    return path


def of_f(*events):
    return [(operation, microseconds, "jit_f", 7) for operation, microseconds in events]


RUN = of_f(("sort.0", 5), ("while.5", 90), ("wrapped_add", 20), ("small", 4), ("wrapped_add", 30), ("small", 6))


def test_kernels_are_summed_apart_from_the_containers_around_them(tmp_path):
    write_trace(tmp_path, RUN)
    costs = costliest_operations(tmp_path, TEXT)
    listed = [(one.name, one.opcode, one.calls, round(one.seconds * 1e6)) for one in costs.kernels]
    assert listed == [("wrapped_add", "fusion", 2, 50), ("small", "call", 2, 10), ("sort.0", "sort", 1, 5)]
    assert [(one.name, one.calls, round(one.seconds * 1e6)) for one in costs.containers] == [("while.5", 1, 90)]
    assert costs.kernel_seconds == pytest.approx(65e-6)
    assert costs.kernel_calls == 5


def test_what_runs_deep_inside_makes_a_container_too(tmp_path):
    text = """HloModule jit_f
%deep (a: f32[4]) -> f32[4] {
  ROOT %add.1 = f32[4]{0} add(%a, %a)
}
%branch (b: f32[4]) -> f32[4] {
  ROOT %call.1 = f32[4]{0} call(%b), to_apply=%deep
}
ENTRY %main (x: f32[4]) -> f32[4] {
  ROOT %cond.1 = f32[4]{0} conditional(%x), branch_computations={%branch, %none}
}
"""
    write_trace(tmp_path, of_f(("cond.1", 9), ("add.1", 4)))
    costs = costliest_operations(tmp_path, text)
    assert [[one.name for one in listed] for listed in costs[:2]] == [["add.1"], ["cond.1"]]


def test_each_operation_names_its_shape_and_source(tmp_path):
    write_trace(tmp_path, [*RUN, *of_f(("unknown", 1))])
    costs = costliest_operations(tmp_path, TEXT)
    sources = {one.name: (one.shape, one.op_name, one.source_line) for one in costs.kernels + costs.containers}
    assert sources["wrapped_add"] == (
        "f32[4]{0}",
        "jit(f)/while/body/add",
        "/somewhere/model.py:31",
    )  # of what it holds
    assert sources["sort.0"] == ("f32[4]{0}", "jit(f)/sort", "/a/b.py:3")
    assert sources["unknown"] == ("f32[4]{0}", "", "")  # the name of an argument is no source
    assert sources["while.5"] == ("(s32[], /*index=1*/f32[4]{0})", "jit(f)/while", "")


def test_top_limits_the_lists_and_not_the_sums(tmp_path):
    write_trace(tmp_path, RUN)
    costs = costliest_operations(tmp_path, TEXT, top=1)
    assert [one.name for one in costs.kernels] == ["wrapped_add"]
    assert costs.kernel_calls == 5
    with pytest.raises(ValueError, match="top must be at least 1, got 0"):
        costliest_operations(tmp_path, TEXT, top=0)


def test_other_programs_do_not_count(tmp_path):
    others = [("sort.0", 99, "jit_g", 8), ("sort.0", 99, "jit_f", 9), ("fusion.77", 99, "jit_f", 9)]
    write_trace(tmp_path, [*RUN, *others])  # the last two: the same function, compiled for other shapes
    assert costliest_operations(tmp_path, TEXT).kernel_seconds == pytest.approx(65e-6)


def test_on_the_host_an_event_that_only_bears_the_name_does_not_count(tmp_path):
    write_trace(tmp_path, [*RUN, ("sort.0", 1000, None, None)])
    assert costliest_operations(tmp_path, TEXT).kernel_seconds == pytest.approx(65e-6)


def test_the_record_of_a_device_goes_before_that_of_the_host(tmp_path):
    device = write_trace(tmp_path / "device", of_f(("sort.0", 2)), plane="/device:GPU:0").read_bytes()
    launches = write_trace(tmp_path / "host", of_f(("sort.0", 40))).read_bytes()
    (tmp_path / "both.xplane.pb").write_bytes(launches + device)  # serialized messages that follow one another are one
    assert costliest_operations(tmp_path, TEXT).kernel_seconds == pytest.approx(2e-6)


def test_a_device_may_name_the_operation_itself(tmp_path):
    write_trace(tmp_path, [("sort.0", 2, None, None), ("step", 9, None, None)], plane="/device:TPU:0")
    assert costliest_operations(tmp_path, TEXT).kernel_seconds == pytest.approx(2e-6)


def test_the_newest_trace_is_read(tmp_path):
    old = write_trace(tmp_path / "z", of_f(("sort.0", 1)))
    os.utime(old, (1, 1))
    write_trace(tmp_path / "a", of_f(("sort.0", 2)))
    assert costliest_operations(tmp_path, TEXT).kernel_seconds == pytest.approx(2e-6)


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path))):
        costliest_operations(tmp_path, TEXT)
    write_trace(tmp_path, [("sort.0", 1, "jit_g", 8)])
    with pytest.raises(ValueError, match=r"jit_f.*jit_g"):
        costliest_operations(tmp_path, TEXT)
    with pytest.raises(ValueError, match=r"compiled\.as_text\(\)"):
        costliest_operations(tmp_path, "func.func @main()")


@pytest.mark.usefixtures("source_lines")
def test_a_real_trace_shows_the_loop_and_the_product_in_it(tmp_path):
    def program(x):
        return jax.lax.fori_loop(0, 6, lambda _, y: jnp.sin(y @ y), x)

    compiled = jax.jit(program).lower(jnp.full((300, 300), 1e-3)).compile()
    x = jnp.full((300, 300), 1e-3)
    jax.block_until_ready(compiled(x))
    with trace(tmp_path):
        jax.block_until_ready(compiled(x))
    costs = costliest_operations(tmp_path, compiled.as_text())
    product = next(one for one in costs.kernels if one.op_name.endswith("dot_general"))
    assert product.calls == 6
    assert product.shape.startswith("f32[300,300]")
    assert product.source_line.startswith(__file__)
    assert 0 < product.seconds <= costs.kernel_seconds < 10
    assert not {one.opcode for one in costs.kernels} & {"while", "conditional", "call"}
