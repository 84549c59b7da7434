"""Logistic regression and the support vector machine: their gradients, and their learning."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.examples import SLOW
from mlcd_fixtures.partitions import partition

from mlcd.core.errors import UserError
from mlcd.planners.functions.workloads import Trainer, trainer
from mlcd_bench.workloads.linear import LogisticRegression, SupportVectorMachine

LINEAR = (LogisticRegression, SupportVectorMachine)
PAPER_TARGET = 0.66
"""CE-scaling, table IV: logistic regression on Higgs."""


def descend(
    model: Trainer, data: str, samples: int, *, parts: int, batch: int, learning_rate: float, epochs: int
) -> list[float]:
    """Plain SGD as functions do it: each takes the gradient of its own batch, all go the mean of these."""
    shares = [partition(data, samples, part, parts) for part in range(parts)]
    whole = partition(data, samples, 0, 1)
    parameters, losses = model.initial(0), []
    for _ in range(epochs):
        for first in range(0, samples // parts, batch):
            cut = slice(first, first + batch)
            found = [model.gradient(parameters, features[cut], labels[cut])[1] for features, labels in shares]
            with np.errstate(over="ignore", invalid="ignore"):
                parameters = parameters - np.float32(learning_rate) * np.mean(found, axis=0, dtype=np.float32)
        losses.append(model.loss(parameters, *whole))
    return losses


@pytest.mark.parametrize("kind", LINEAR)
@given(seed=st.integers(0, 10_000), l2=st.sampled_from((0.0, 0.1)))
@SLOW
def test_the_gradient_is_the_slope_of_the_loss_and_the_penalty(kind, seed, l2):
    rng = np.random.default_rng(seed)
    model = kind((5,), 2, l2=l2)
    features, labels = rng.standard_normal((40, 5)).astype(np.float32), rng.integers(0, 2, 40, dtype=np.int32)
    parameters, step = rng.standard_normal(6), 1e-5

    def objective(at: np.ndarray) -> float:
        return model.loss(at, features.astype(float), labels) + l2 / 2 * float(at[:-1] @ at[:-1])

    loss, found = model.gradient(parameters.astype(np.float32), features, labels)
    slopes = [
        (objective(parameters + step * axis) - objective(parameters - step * axis)) / (2 * step) for axis in np.eye(6)
    ]
    # A sample this near to the hinge's kink has no slope there: it may be off by its own share.
    margins = np.where(labels == 1, 1, -1) * (features @ parameters[:-1] + parameters[-1])
    kinked = (np.abs(margins - 1) < 1e-4).sum()
    assert found == pytest.approx(slopes, abs=2e-4 + kinked * np.abs(features).max() / 40)
    assert loss == pytest.approx(model.loss(parameters, features, labels), rel=1e-5)
    assert found.dtype == np.float32


@pytest.mark.parametrize("kind", LINEAR)
def test_there_are_as_many_parameters_as_features_and_a_bias(kind):
    assert kind((28,), 2).size == len(kind((28,), 2).initial(7)) == 29


def test_the_losses_at_zero_are_those_of_random_guessing():
    features, labels = partition("higgs", 100, 0, 1)
    start = LogisticRegression((28,), 2).initial(0)
    assert LogisticRegression((28,), 2).loss(start, features, labels) == pytest.approx(math.log(2))
    assert SupportVectorMachine((28,), 2).loss(start, features, labels) == pytest.approx(1.0)


@pytest.mark.parametrize("parts", [1, 4])
def test_logistic_regression_reaches_the_papers_target_on_higgs_at_the_papers_learning_rate(parts):
    losses = descend(
        trainer("lr", "higgs"), "higgs", 20_000, parts=parts, batch=100 // parts, learning_rate=0.01, epochs=12
    )
    assert losses[0] > PAPER_TARGET > losses[-1]
    assert losses == sorted(losses, reverse=True)


def test_more_functions_with_smaller_batches_train_the_same_way():
    """The mean of means is the mean where the batches are of one size; only the order of samples differs."""
    one, four = (
        descend(trainer("svm", "higgs"), "higgs", 8_000, parts=n, batch=8_000 // n, learning_rate=0.1, epochs=5)
        for n in (1, 4)
    )
    assert one == pytest.approx(four, rel=1e-4)


@pytest.mark.parametrize("model", ["lr", "svm"])
def test_both_learn_from_deep_features(model):
    losses = descend(trainer(model, "yfcc"), "yfcc", 1_024, parts=2, batch=32, learning_rate=0.01, epochs=6)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("model", ["lr", "svm"])
@pytest.mark.parametrize("learning_rate", [1e3, 1e30])
def test_a_learning_rate_too_large_shows_in_the_loss_and_raises_no_error(model, learning_rate):
    losses = descend(
        trainer(model, "higgs", l2=0.1), "higgs", 2_000, parts=2, batch=100, learning_rate=learning_rate, epochs=2
    )
    assert not losses[-1] < 10


@pytest.mark.parametrize("model", ["lr", "svm"])
def test_a_linear_model_refuses_ten_classes_in_one_line(model):
    with pytest.raises(UserError, match=r"^a linear model has 2 classes, but the data have 10: use 'mobilenet'$"):
        trainer(model, "images")
