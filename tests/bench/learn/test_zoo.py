"""The small models have the stated shapes at every size, and are equal for equal seeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.examples import SLOW

from mlcd_bench.learn import zoo

pytest.importorskip("onnx", reason="pip install 'mlcd[serve]'")
runtime = pytest.importorskip("onnxruntime", reason="pip install 'mlcd[serve]'")


def answers(model, batch, sequence=None):
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = runtime.InferenceSession(model.SerializeToString(), options)
    random = np.random.default_rng(0)
    feed = {}
    for each in session.get_inputs():
        free = {"batch": batch, "sequence": sequence}
        shape = [free.get(axis, axis) for axis in each.shape]
        integers = each.type == "tensor(int64)"
        feed[each.name] = random.integers(0, 10, shape) if integers else random.random(shape, np.float32)
    (told,) = session.get_outputs()
    (found,) = session.run(None, feed)
    assert [batch if axis == "batch" else axis for axis in told.shape] == list(found.shape)
    return found


MODELS = {
    "plain": lambda seed: zoo.cnn((4, 8), style="plain", size=8, seed=seed),
    "residual": lambda seed: zoo.cnn((4, 8), blocks=2, size=8, seed=seed),
    "mobile": lambda seed: zoo.cnn((4, 8), style="mobile", size=8, seed=seed),
    "transformer": lambda seed: zoo.transformer(1, 8, heads=2, sequence=6, seed=seed),
    "LSTM": lambda seed: zoo.recurrent("LSTM", 8, layers=2, sequence=6, seed=seed),
    "GRU": lambda seed: zoo.recurrent("GRU", 8, bidirectional=True, sequence=6, seed=seed),
    "RNN": lambda seed: zoo.recurrent("RNN", 8, sequence=6, seed=seed),
    "generator": lambda seed: zoo.generator(8, 4, size=16, seed=seed),
    "recommender": lambda seed: zoo.recommender(3, 20, 4, seed=seed),
    "one table": lambda seed: zoo.recommender(1, 20, 4, interactions=False, seed=seed),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_seed_sets_the_weights_and_every_sample_is_answered_alone(name):
    model = MODELS[name](1)
    assert model.SerializeToString() == MODELS[name](1).SerializeToString()
    assert model.SerializeToString() != MODELS[name](2).SerializeToString()
    one, five = answers(model, 1), answers(model, 5)
    assert len(one) == 1
    assert len(five) == 5
    assert np.isfinite(five).all()
    assert five.std() > 0


@given(length=st.integers(1, 40), batch=st.integers(1, 4))
@SLOW
def test_a_variable_sequence_accepts_any_length(length, batch):
    assert answers(zoo.transformer(1, 8, heads=2, sequence=None), batch, length).shape == (batch, 2)
    assert answers(zoo.recurrent("GRU", 8, sequence=None), batch, length).shape == (batch, 2)


def test_a_generator_only_makes_sizes_that_double_from_four():
    assert answers(zoo.generator(8, 4, size=4), 2).shape == (2, 3, 4, 4)
    with pytest.raises(ValueError, match="size 24"):
        zoo.generator(size=24)
