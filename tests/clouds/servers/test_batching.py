"""Requests are joined, up to a batch, and each gets its own answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.clouds.servers.model import Batcher
from mlcd.clouds.tensors import Port

LONG_S = 300.0
"""Longer than any test: what is answered before did not wait."""


@dataclass
class Doubles:
    """A model that doubles its input, and keeps how many rows each pass had. It cannot take what is negative."""

    inputs: tuple[Port, ...] = (Port("x", "FP32", (-1, -1)),)
    outputs: tuple[Port, ...] = (Port("y", "FP32", (-1, -1)),)
    name: str = "doubles"
    passes: list[int] = field(default_factory=list)

    def run(self, inputs):
        (x,) = inputs.values()
        self.passes.append(len(x))
        if (x < 0).any():
            raise RuntimeError("negative")
        return {"y": 2 * x}


@dataclass
class Sums(Doubles):
    """A model whose answer has no row for each sample."""

    def run(self, inputs):
        return {"y": super().run(inputs)["y"].sum(axis=0, keepdims=True)}


def row(value: float, rows: int = 1, length: int = 3):
    return {"x": np.full((rows, length), value, dtype=np.float32)}


def answers(model, requests, *, batch: int, max_wait_s: float = LONG_S):
    """Of requests that are all sent at once."""

    async def ask():
        batcher = Batcher(model, batch, max_wait_s)
        try:
            return await asyncio.gather(*(batcher.answer(request) for request in requests), return_exceptions=True)
        finally:
            await batcher.close()

    return asyncio.run(ask())


def test_a_full_batch_is_one_pass_and_waits_for_nobody():
    model = Doubles()
    told = answers(model, [row(i) for i in range(8)], batch=4)
    assert model.passes == [4, 4]
    assert [answer["y"][0, 0] for answer in told] == [0, 2, 4, 6, 8, 10, 12, 14]


def test_a_lone_request_is_answered_once_it_has_waited():
    model = Doubles()
    assert answers(model, [row(1)], batch=4, max_wait_s=0.01)[0]["y"].tolist() == [[2, 2, 2]]
    assert model.passes == [1]


def test_requests_of_different_lengths_are_not_joined():
    model = Doubles()
    told = answers(model, [row(1, length=2), row(1, length=3), row(1, length=2)], batch=2, max_wait_s=0.01)
    assert [answer["y"].shape for answer in told] == [(1, 2), (1, 3), (1, 2)]
    assert sorted(model.passes) == [1, 2]


def test_a_request_larger_than_a_batch_goes_alone():
    model = Doubles()
    told = answers(model, [row(1, rows=5), row(2)], batch=4, max_wait_s=0.01)
    assert model.passes == [5, 1]
    assert told[0]["y"].shape == (5, 3)


def test_one_bad_request_does_not_take_its_batch_with_it():
    told = answers(Doubles(), [row(1), row(-1), row(3)], batch=3)
    assert told[0]["y"][0, 0] == 2
    assert isinstance(told[1], RuntimeError)
    assert told[2]["y"][0, 0] == 6


def test_a_model_whose_answer_has_no_rows_is_asked_one_by_one():
    told = answers(Sums(), [row(1), row(2)], batch=2)
    assert [answer["y"][0, 0] for answer in told] == [2, 4]


def test_a_model_of_a_fixed_batch_is_asked_one_by_one():
    model = Doubles(inputs=(Port("x", "FP32", (1, 3)),))
    assert [answer["y"][0, 0] for answer in answers(model, [row(1), row(2)], batch=8)] == [2, 4]
    assert model.passes == [1, 1]


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({"z": np.zeros((1, 3), np.float32)}, "the inputs are x, not z"),
        ({}, "the inputs are x, not none"),
        ({"x": np.zeros((1, 3), np.float64)}, r"input 'x' is FP32 \[-1, -1\], not FP64 \[1, 3\]"),
        ({"x": np.zeros(3, np.float32)}, r"not FP32 \[3\]"),
    ],
)
def test_what_the_model_cannot_take_is_refused_before_it_joins_a_batch(request_, told):
    model = Doubles()
    (error,) = answers(model, [request_], batch=2)
    assert isinstance(error, ValueError)
    with pytest.raises(ValueError, match=told):
        raise error
    assert model.passes == []


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 2), st.booleans()), min_size=1, max_size=12), st.integers(1, 5)
)
def test_every_request_gets_its_own_answer_and_no_batch_is_too_large(requests, batch):
    model = Doubles()
    sent = [row(-1.0 if bad else i, rows, length) for i, (rows, length, bad) in enumerate(requests)]
    told = answers(model, sent, batch=batch, max_wait_s=0.0)
    for (_, _, bad), request, answer in zip(requests, sent, told, strict=True):
        if bad:
            assert isinstance(answer, RuntimeError)
        else:
            np.testing.assert_array_equal(answer["y"], 2 * request["x"])
    largest = max(rows for rows, _, _ in requests)
    assert max(model.passes) <= max(batch, largest)
