"""The small network: its size, its initial parameters, its gradient, and its learning."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from mlcd_fixtures.partitions import partition

from mlcd.core.errors import MissingExtra, UserError
from mlcd.planners.functions.workloads import trainer


@pytest.fixture
def torch():
    """With one thread: the tests beside this one want the other cores."""
    found = pytest.importorskip("torch", reason="needs PyTorch: pip install 'mlcd[frameworks]'")
    threads = found.get_num_threads()
    found.set_num_threads(1)
    yield found
    found.set_num_threads(threads)


def test_initial_parameters_depend_on_the_seed_and_have_the_stated_size():
    net = trainer("mobilenet", "images")
    assert np.array_equal(net.initial(3), net.initial(3))
    assert not np.array_equal(net.initial(3), net.initial(4))
    assert net.initial(3).shape == (net.size,)
    assert net.initial(3).dtype == np.float32


def test_it_refuses_data_that_are_not_images():
    with pytest.raises(UserError, match="needs images"):
        trainer("mobilenet", "higgs")


def test_it_says_what_to_install_where_torch_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    net = trainer("mobilenet", "images")
    with pytest.raises(MissingExtra, match=r"pip install 'mlcd\[frameworks\]'"):
        net.loss(net.initial(0), *partition("images", 2, 0, 1))


def test_its_gradient_is_the_slope_of_its_loss_and_the_penalty(torch):
    net, l2 = trainer("mobilenet", "images", l2=0.01), 0.01
    batch = partition("images", 32, 0, 1)
    parameters = net.initial(0)
    loss, found = net.gradient(parameters, *batch)
    direction = found / np.linalg.norm(found)

    def objective(at: np.ndarray) -> float:
        return net.loss(at, *batch) + l2 / 2 * float(at @ at)

    step = np.float32(1e-2)
    slope = (objective(parameters + step * direction) - objective(parameters - step * direction)) / (2 * step)
    assert slope == pytest.approx(np.linalg.norm(found), rel=0.02)
    assert loss == pytest.approx(net.loss(parameters, *batch), rel=1e-5)


def test_it_learns_and_generalises(torch):
    net = trainer("mobilenet", "images")
    features, labels = partition("images", 640, 0, 1, seed=0)
    parameters = net.initial(0)
    for first in [*range(0, 640, 16)] * 3:
        cut = slice(first, first + 16)
        parameters = parameters - np.float32(0.1) * net.gradient(parameters, features[cut], labels[cut])[1]
    chance = np.log(10)
    assert net.loss(parameters, features, labels) < 0.7 * chance
    assert net.loss(parameters, *partition("images", 256, 0, 1, seed=1)) < 0.7 * chance


def test_a_learning_rate_too_large_shows_in_the_loss(torch):
    net = trainer("mobilenet", "images", l2=1.0)
    batch, parameters = partition("images", 4, 0, 1), net.initial(0)
    for _ in range(3):
        parameters = parameters - np.float32(1e12) * net.gradient(parameters, *batch)[1]
    assert not net.loss(parameters, *batch) < 10
