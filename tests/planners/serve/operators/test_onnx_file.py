"""Reading a model's file: its facts, and one line for each problem."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.errors import UnknownName, UserError
from mlcd.planners.serve.operators import example_feed, open_model, profile_onnx
from mlcd.planners.serve.operators.onnx_file import FileCheck, check_fields
from mlcd.planners.serve.operators.onnx_session import open_session
from mlcd_bench.learn import zoo

onnx = pytest.importorskip("onnx", reason="pip install 'mlcd[serve]'")
pytest.importorskip("onnxruntime", reason="pip install 'mlcd[serve]'")
helper, TensorProto = onnx.helper, onnx.TensorProto
Write = Callable[..., Path]


def refusal(path: Path, **how: Any) -> str:
    """What is said of a file that cannot be used: one line that begins with its name."""
    with pytest.raises(UserError) as refused:
        profile_onnx(open_model(path), (2,), passes=1, **how)
    line = str(refused.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    return line


def embedding(nodes: list[Any], rows: int = 7, shape: tuple[Any, ...] = ("batch", 3)) -> Any:
    """A model of an integer input 'ids' and a table of some rows; `nodes` end in 'out'."""
    table = onnx.numpy_helper.from_array(np.ones((rows, 4), np.float32), "table")
    graph = helper.make_graph(
        nodes,
        "embedding",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, shape)],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
        [table],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_model_tells_its_inputs_and_its_size(write_model: Write) -> None:
    model = open_model(write_model(zoo.recommender(tables=3, rows=50, width=4, dense=5, layers=(8,))))
    assert [(each.name, each.dtype, each.shape, each.rows) for each in model.inputs] == [
        ("dense", "float32", ("batch", 5), None),
        ("ids", "int64", ("batch", 3), 50),
    ]
    dense = 5 * 4 + 4, (4 * 4 + 16) * 8 + 8, 8 + 1
    assert model.parameters == 3 * 50 * 4 + sum(dense)
    integers = 3 + 1  # how to split the ids, and where to put an axis
    assert model.weights_mb == pytest.approx((4 * model.parameters + 8 * integers) / 2**20)
    assert model.operators["Gather"] == 3
    assert model.precision == "fp32"
    assert model.batch is None
    assert [each.shape for each in model.outputs] == [("batch", 1)]


def test_weights_beside_the_file_count_like_those_inside(write_model: Write) -> None:
    inside = open_model(write_model(zoo.cnn()))
    apart = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    beside = open_model(write_model(zoo.cnn(), "apart.onnx", **apart))
    assert (beside.weights_mb, beside.parameters) == (inside.weights_mb, inside.parameters)
    assert profile_onnx(beside, passes=1)[0].calls == profile_onnx(inside, passes=1)[0].calls


@given(batch=st.integers(1, 20), sequence=st.integers(1, 40), seed=st.integers(0, 5))
def test_a_feed_has_the_shapes_that_were_asked_for_and_rows_that_exist(
    tmp_path_factory: pytest.TempPathFactory, batch: int, sequence: int, seed: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "free.onnx"
    if not path.exists():
        onnx.save(zoo.transformer(1, 8, heads=2, vocabulary=30, sequence=None), str(path))
    model = open_model(path)
    feed = example_feed(model, batch, {"sequence": sequence}, seed)
    assert feed["tokens"].shape == (batch, sequence)
    assert feed["tokens"].dtype == np.int64
    assert 0 <= feed["tokens"].min() <= feed["tokens"].max() < 30
    again = example_feed(model, batch, {"sequence": sequence}, seed)
    assert (feed["tokens"] == again["tokens"]).all()


PICKS = {
    "at once": [helper.make_node("Gather", ["table", "ids"], ["out"])],
    "after a cast and a reshape": [
        helper.make_node("Cast", ["ids"], ["cast"], to=TensorProto.INT32),
        helper.make_node("Unsqueeze", ["cast", "one"], ["wide"]),
        helper.make_node("Gather", ["table", "wide"], ["out"]),
    ],
    "from a table that is scaled first": [
        helper.make_node("Identity", ["table"], ["same"]),
        helper.make_node("Gather", ["same", "ids"], ["out"]),
    ],
    "one column": [
        helper.make_node("Gather", ["ids", "one"], ["column"], axis=1),
        helper.make_node("Gather", ["table", "column"], ["out"]),
    ],
}


@pytest.mark.parametrize("how", PICKS)
def test_integers_that_pick_rows_of_a_table_stay_inside_it(write_model: Write, how: str) -> None:
    proto = embedding(PICKS[how])
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "one"))
    model = open_model(write_model(proto))
    assert model.inputs[0].rows == 7
    feed = example_feed(model, 500)
    assert feed["ids"].max() == 6
    assert open_session(model.path).run(None, feed)


def test_integers_that_pick_nothing_are_ones_as_masks_are(write_model: Write) -> None:
    cast = helper.make_node("Cast", ["ids"], ["out"], to=TensorProto.FLOAT)
    model = open_model(write_model(embedding([cast])))
    assert model.inputs[0].rows is None
    assert (example_feed(model, 4)["ids"] == 1).all()


def test_a_fixed_batch_is_found_and_no_other_can_be_asked(write_model: Write) -> None:
    proto = embedding(PICKS["at once"], shape=(3, 2))
    path = write_model(proto)
    assert open_model(path).batch == 3
    assert "its batch is fixed at 3" in refusal(path)


def test_free_axes_without_a_size_are_named(write_model: Write) -> None:
    path = write_model(zoo.transformer(1, 8, heads=2, sequence=None))
    assert "--shape sequence=128" in refusal(path)
    assert "--shape ids.1=128" in refusal(
        write_model(embedding(PICKS["at once"], shape=("batch", None)), "unnamed.onnx")
    )
    with pytest.raises(UnknownName, match="did you mean 'sequence'"):
        example_feed(open_model(path), 1, {"sequnce": 3})
    assert "has no axis 'sequence' to size" in refusal(write_model(zoo.cnn(), "cnn.onnx"), shapes={"sequence": 3})
    assert "would take" in refusal(path, shapes={"sequence": 10**9})
    assert "broadcast" in refusal(path, shapes={"sequence": zoo.LONGEST + 1})


def test_a_batch_that_is_not_the_first_axis_is_refused(write_model: Write) -> None:
    path = write_model(embedding(PICKS["at once"], shape=("time", "batch")))
    assert "batch first" in refusal(path, shapes={"batch": 3})


def test_a_folder_nothing_and_an_empty_file_are_refused(tmp_path: Path, write_model: Write) -> None:
    assert "is a folder" in refusal(tmp_path)
    assert "no such file" in refusal(tmp_path / "none.onnx")
    assert "is empty" in refusal(write_model(b""))


@pytest.mark.parametrize("content", [b"hello world\n", b"\x89PNG\r\n\x1a\n" + bytes(99), b"PK\x03\x04" + b"x" * 99])
def test_a_file_that_is_not_onnx_is_reported(write_model: Write, content: bytes) -> None:
    assert "is not an ONNX file" in refusal(write_model(content))


WHOLE = zoo.cnn((4,), size=8).SerializeToString()


@given(length=st.integers(1, len(WHOLE) - 1))
def test_a_file_that_ends_too_early_is_never_taken_for_a_model(
    tmp_path_factory: pytest.TempPathFactory, length: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.onnx"
    path.write_bytes(WHOLE[:length])
    with pytest.raises(UserError) as refused:
        open_session(open_model(path).path)
    assert "\n" not in str(refused.value)
    if 2 <= length < len(WHOLE) - 10:  # from the version to the end of the graph
        assert "is truncated" in str(refused.value)


@given(content=st.binary(min_size=1, max_size=300))
def test_noise_is_always_refused_in_one_line(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.onnx"
    path.write_bytes(content)
    with pytest.raises(UserError) as refused:
        open_session(open_model(path).path)
    assert "\n" not in str(refused.value)


def test_a_damaged_graph_is_refused(write_model: Write) -> None:
    assert "is damaged" in refusal(write_model(WHOLE[:60] + b"\xff" * 40 + WHOLE[100:]))


def test_a_file_of_3_gb_is_refused_unread_and_says_how_to_save_it(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate(3 << 30)
    line = refusal(path)
    assert "3.2 GB" in line
    assert "save_as_external_data=True" in line


def test_the_length_of_a_large_file_is_checked_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    graph = 3 << 30
    length = bytes((graph >> 7 * i & 0x7F) | (0x80 if i < 4 else 0) for i in range(5))
    with path.open("wb") as file:
        file.write(b"\x08\x08\x3a" + length)
        file.truncate(3 + 5 + graph)
    assert check_fields(path) is FileCheck.COMPLETE
    os.truncate(path, graph)
    assert check_fields(path) is FileCheck.TRUNCATED


def test_missing_or_short_weights_are_named(write_model: Write, tmp_path: Path) -> None:
    path = write_model(zoo.cnn(), save_as_external_data=True, location="weights.bin", size_threshold=0)
    os.truncate(tmp_path / "weights.bin", 100)
    assert "'weights.bin', which is truncated" in refusal(path)
    (tmp_path / "weights.bin").unlink()
    assert "'weights.bin', which does not exist" in refusal(path)


def test_what_onnx_runtime_cannot_run_is_told_in_its_own_words(
    write_model: Write, capfd: pytest.CaptureFixture[str]
) -> None:
    unknown = zoo.cnn()
    unknown.graph.node[1].op_type = "Frobnicate"
    assert "No Op registered for Frobnicate" in refusal(write_model(unknown))
    future = zoo.cnn()
    future.opset_import[0].version = 99
    assert "Opset 99" in refusal(write_model(future))
    loose = zoo.cnn()
    loose.graph.node[1].input[0] = "nothing"
    assert "'nothing'" in refusal(write_model(loose))
    assert capfd.readouterr().err == ""


def test_a_model_of_no_input_or_one_that_is_no_tensor_is_refused(write_model: Write) -> None:
    none = zoo.cnn()
    del none.graph.input[:]
    assert "has no input" in refusal(write_model(none))
    sequence = zoo.cnn()
    inner = helper.make_tensor_type_proto(TensorProto.FLOAT, [1])
    sequence.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(inner))
    assert "is a sequence" in refusal(write_model(sequence))
    shapeless = zoo.cnn()
    shapeless.graph.input[0].type.tensor_type.ClearField("shape")
    assert "has no shape" in refusal(write_model(shapeless))
