"""A small file whose inputs would need much memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlcd.clouds.load.oip import EXAMPLES, MOST_BYTES, from_file
from mlcd.core.errors import UserError
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import ServingTask
from mlcd.planners.serve.operators.onnx_graph import LARGEST_VALUE, check_values

onnx = pytest.importorskip("onnx", reason="pip install 'mlcd[serve]'")
pytest.importorskip("onnxruntime", reason="pip install 'mlcd[serve]'")
helper, TensorProto = onnx.helper, onnx.TensorProto


def shape_of_input(numbers: int) -> onnx.ModelProto:
    """A model that only looks at the shape of its one input."""
    given = helper.make_tensor_value_info("x", TensorProto.UINT8, [1, numbers])
    made = helper.make_tensor_value_info("y", TensorProto.INT64, [2])
    graph = helper.make_graph([helper.make_node("Shape", ["x"], ["y"])], "g", [given], [made])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_an_input_that_is_too_large_is_refused_before_it_is_made():
    check_values("m.onnx", shape_of_input(LARGEST_VALUE))
    with pytest.raises(UserError, match="its value 'x' has 1,073,741,825 numbers"):
        check_values("m.onnx", shape_of_input(LARGEST_VALUE + 1))


@pytest.mark.parametrize(("numbers", "examples"), [(4, EXAMPLES), (MOST_BYTES // 2, 2), (MOST_BYTES + 1, 1)])
def test_of_large_inputs_a_load_has_few_different_ones(numbers: int, examples: int, tmp_path: Path):
    path = tmp_path / "m.onnx"
    path.write_bytes(shape_of_input(numbers).SerializeToString())
    assert len(from_file(ServingTask(ModelFacts("m"), path=str(path)), tmp_path)) == examples
