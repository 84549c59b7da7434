"""The operators of each family, as ONNX Runtime times them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.clock import VirtualClock
from mlcd.planners.serve.operators import facts_of, key_operators, open_model, parts, profile_onnx
from mlcd.planners.serve.operators.onnx_profile import own_times_us, read_passes
from mlcd_bench.learn import zoo

onnx = pytest.importorskip("onnx", reason="pip install 'mlcd[serve]'")
pytest.importorskip("onnxruntime", reason="pip install 'mlcd[serve]'")
helper, TensorProto = onnx.helper, onnx.TensorProto
Write = Callable[..., Path]
KEY = {"cnn": "Conv", "transformer": "MatMul", "rnn": "LSTM", "gan": "ConvTranspose", "recsys": "Gather"}
INPUTS = {"cnn": "image32", "transformer": "tokens32", "rnn": "tokens32", "gan": "", "recsys": ""}


def test_every_family_has_its_key_operator_and_shares_that_sum_to_one(family: str, family_file: Path) -> None:
    small, large = profile_onnx(open_model(family_file), (2, 32), passes=5)
    for profile in (small, large):
        found = parts(profile)
        assert sum(part.time_share for part in found) == pytest.approx(1)
        assert sum(part.memory_share for part in found) == pytest.approx(1)
        assert sum(profile.shares.values()) == pytest.approx(1)
        assert KEY[family] in key_operators(profile)
    assert (small.batch, large.batch) == (2, 32)
    assert large.calls == small.calls
    assert large.memory_mb == pytest.approx(16 * small.memory_mb, rel=1e-6)


def test_a_convolution_takes_nearly_all_of_a_cnn(write_model: Write) -> None:
    (profile,) = profile_onnx(open_model(write_model(zoo.cnn(blocks=2))))
    assert key_operators(profile) == ("Conv",)
    assert profile.shares["Conv"] > 0.8
    (conv,) = (each for each in profile.operators if each.name == "Conv")
    assert conv.calls == 1 + 6 * 2 + 2  # the first, two a block, and the short cuts where the width changes


def test_memory_is_that_of_the_results_and_views_take_none(write_model: Write) -> None:
    (profile,) = profile_onnx(open_model(write_model(zoo.recurrent(width=16, sequence=10))), (4,), passes=1)
    memory = {each.name: each.memory_mb * 2**20 for each in profile.operators}
    assert memory["Gather"] == 4 * (4 * 10 * 16 + 4 * 16)  # the words' vectors, and the last state
    assert memory["Reshape"] == 0


def test_what_is_known_of_a_model_is_known_of_every_family(family: str, family_file: Path) -> None:
    facts = facts_of(family_file, batches=(1, 4))
    assert (facts.name, facts.family, facts.inputs) == (family, family, INPUTS[family])
    assert [profile.batch for profile in facts.profiles] == [1, 4]
    assert facts.weights_mb is not None
    assert facts.parameters is not None
    assert 4 * facts.parameters * 1e9 <= facts.weights_mb * 2**20 <= 4.1 * facts.parameters * 1e9


def test_a_sequence_of_a_given_length_is_part_of_the_kind_of_input(write_model: Write) -> None:
    path = write_model(zoo.transformer(1, 8, heads=2, sequence=None))
    assert facts_of(path, {"sequence": 20}, (1,)).inputs == "tokens20"


@pytest.mark.parametrize("build", [zoo.transformer, zoo.recommender])
def test_a_quantised_model_is_told_as_such_and_still_runs(write_model: Write, build: Callable[[], Any]) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    path = write_model(build())
    whole, quantised = open_model(path), path.with_name("int8.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantization.quantize_dynamic(str(path), str(quantised))
    found = open_model(quantised)
    assert (whole.precision, found.precision) == ("fp32", "int8")
    assert found.weights_mb < whole.weights_mb / 2
    assert [each.rows for each in found.inputs] == [each.rows for each in whole.inputs]
    assert facts_of(quantised, batches=(2,)).profiles[0].precision == "int8"


def test_a_model_of_one_fixed_batch_is_profiled_at_it(write_model: Write) -> None:
    proto = zoo.cnn((4,), size=8)
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 3
    assert [profile.batch for profile in facts_of(write_model(proto)).profiles] == [3]


@dataclass
class Hurried(VirtualClock):
    """A second passes whenever somebody looks."""

    def elapsed_s(self) -> float:
        self.seconds += 1
        return self.seconds


def test_no_pass_begins_when_its_time_is_over_but_one_is_counted(write_model: Write) -> None:
    model, clock = open_model(write_model(zoo.recommender())), Hurried()
    profiles = profile_onnx(model, (1, 2), passes=1_000_000, limit_s=0.5, clock=clock)
    assert all(profile.seconds > 0 for profile in profiles)
    assert clock.seconds == 4  # two looks a batch: at its start, and after the first counted pass


def test_a_loop_is_not_counted_twice(write_model: Write) -> None:
    """Its body's operators are told; what is left to the loop itself is what they do not take."""
    floats, flag = TensorProto.FLOAT, TensorProto.BOOL
    told = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [told("i", TensorProto.INT64, []), told("go", flag, []), told("x", floats, None)],
        [told("on", flag, []), told("y", floats, None)],
    )
    weights = {"w": np.eye(256, dtype=np.float32), "times": np.array(5), "true": np.array(True)}
    graph = helper.make_graph(
        [helper.make_node("Loop", ["times", "true", "start"], ["end"], body=body)],
        "loop",
        [told("start", floats, ["batch", 256])],
        [told("end", floats, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (profile,) = profile_onnx(open_model(write_model(proto)), (256,))
    calls = {each.name: each.calls for each in profile.operators}
    assert (calls["Loop"], calls["MatMul"]) == (1, 5)
    assert profile.shares["MatMul"] > profile.shares["Loop"]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=8), st.integers(0, 9))
def test_own_times_add_up_to_the_time_that_was_spent(gaps: list[tuple[int, int]], slack: int) -> None:
    """Nodes one after the other, inside one that is around them all."""
    inner, now = [], 0
    for gap, length in gaps:
        now += gap + 1
        inner.append({"ts": now, "dur": length})
        now += length
    whole = {"ts": 0, "dur": now + slack}
    own = own_times_us([whole, *inner])
    assert sum(own) == whole["dur"]
    assert own[1:] == [node["dur"] for node in inner]


def test_passes_are_read_apart() -> None:
    def node(ts: int, name: str, bytes_: int = 2**20) -> dict[str, object]:
        arguments = {"op_name": name, "output_size": str(bytes_)}
        return {"ph": "X", "cat": "Node", "name": f"{name}_kernel_time", "ts": ts, "dur": 5, "args": arguments}

    def run(ts: int) -> dict[str, object]:
        return {"ph": "X", "cat": "Session", "name": "model_run", "ts": ts, "dur": 50}

    events = [node(12, "FusedConv"), node(20, "Conv"), node(30, "Reshape"), run(10), node(71, "Conv"), run(70)]
    first, second = read_passes(events)
    assert (first["Conv"].calls, first["Conv"].seconds, first["Conv"].memory_mb) == (2, 1e-5, 2.0)
    assert first["Reshape"].memory_mb == 0
    assert second["Conv"].calls == 1
