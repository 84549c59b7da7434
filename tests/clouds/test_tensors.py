"""Packed tensors are unpacked unchanged, and an invalid message is an error."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mlcd.clouds.tensors import DATATYPES, datatype_of, from_bytes, pack, unpack

NUMBERS = [dtype for name, dtype in DATATYPES.items() if name != "BYTES"]
shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
numbers = st.sampled_from(NUMBERS).flatmap(
    lambda dtype: arrays.arrays(
        dtype, shapes, elements={"allow_nan": False, "allow_infinity": False} if dtype.kind == "f" else None
    )
)
texts = arrays.arrays(object, shapes, elements=st.text(max_size=5).map(str.encode))
messages = st.dictionaries(st.text(min_size=1, max_size=5), st.one_of(numbers, texts), max_size=3)


@given(messages, st.booleans())
def test_packed_tensors_are_unpacked_unchanged(tensors, binary):
    body, json_length = pack("inputs", tensors, {"id": "7"}, binary)
    head, back = unpack("inputs", body, json_length)
    assert head == {"id": "7"}
    assert list(back) == list(tensors)
    for name, tensor in tensors.items():
        assert back[name].shape == tensor.shape
        assert datatype_of(back[name]) == datatype_of(tensor)
        sent, got = tensor.ravel().tolist(), back[name].ravel().tolist()
        assert [text.encode() if isinstance(text, str) else text for text in got] == sent


@given(numbers)
def test_binary_data_are_little_endian_and_row_by_row_for_any_memory_layout(tensor):
    turned = np.asfortranarray(tensor)
    body, length = pack("inputs", {"x": turned}, {}, True)
    assert body[length:] == tensor.tobytes()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[]", "a list of 'inputs'"),
        (b"{}", "a list of 'inputs'"),
        (b'{"inputs": [{"name": "x", "shape": [1], "data": [1]}]}', "lacks its 'datatype'"),
        (b'{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32"}]}', "lacks its 'data'"),
        (b'{"inputs": [{"name": "x", "shape": [1], "datatype": "FP8", "data": [1]}]}', "'FP8': expected one of BOOL"),
        (b'{"inputs": [{"name": "x", "shape": [3], "datatype": "FP32", "data": [1]}]}', "reshape"),
        (b'{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": ["a"]}]}', "could not convert"),
        (b'{"inputs": [3]}', "lacks its"),
        (b"{", "Expecting"),
    ],
)
def test_an_invalid_message_is_an_error(body, message):
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        unpack("inputs", body, None)


def test_too_few_bytes_are_an_error():
    with pytest.raises(ValueError, match=r"7 bytes are no FP32 tensor of shape \[2\]"):
        from_bytes("FP32", (2,), b"1234567")


def test_nested_lists_are_read():
    one = {"name": "x", "datatype": "INT64", "shape": [2, 2], "data": [[1, 2], [3, 4]]}
    assert unpack("inputs", json.dumps({"inputs": [one]}).encode(), None)[1]["x"].tolist() == [[1, 2], [3, 4]]


def test_a_data_type_outside_the_protocol_is_an_error():
    with pytest.raises(ValueError, match="complex"):
        datatype_of(np.zeros(1, dtype=complex))
