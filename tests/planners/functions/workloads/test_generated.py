"""Generated data: the same in any number of parts, and with the traits that the docstrings state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.examples import SLOW
from mlcd_fixtures.partitions import partition

from mlcd.planners.functions.workloads import DATA, dataset, sizes_mb, trainer

SETS = sorted(DATA)


@given(data=st.sampled_from(SETS), samples=st.integers(1, 600), parts=st.integers(1, 5), seed=st.integers(0, 99))
@SLOW
def test_any_number_of_parts_makes_up_the_same_data(data, samples, parts, seed):
    parts = min(parts, samples)
    features, labels = partition(data, samples, 0, 1, seed)
    shares = [partition(data, samples, part, parts, seed) for part in range(parts)]
    assert np.array_equal(np.concatenate([share for share, _ in shares]), features)
    assert np.array_equal(np.concatenate([share for _, share in shares]), labels)
    sizes = {len(share) for _, share in shares}
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("data", SETS)
def test_a_larger_set_begins_with_the_smaller_one_and_another_seed_gives_another(data):
    small, large, other = (partition(data, samples, 0, 1, seed)[0] for samples, seed in ((100, 0), (300, 0), (100, 1)))
    assert np.array_equal(small, large[:100])
    assert not np.array_equal(small, other)


@pytest.mark.parametrize("data", SETS)
def test_blocks_differ_from_each_other(data):
    features, _ = partition(data, 512, 0, 1)
    assert not np.array_equal(features[:256], features[256:])


@pytest.mark.parametrize("data", SETS)
def test_every_slice_has_all_classes_in_similar_shares(data):
    _, labels = partition(data, 4_000, 1, 4)
    shares = np.bincount(labels, minlength=dataset(data).classes) / len(labels)
    assert shares == pytest.approx(1 / dataset(data).classes, abs=0.06)


@pytest.mark.parametrize(("model", "data"), [("lr", "higgs"), ("svm", "yfcc"), ("mobilenet", "images")])
def test_the_stated_sizes_are_those_of_the_arrays(model, data):
    features, labels = partition(data, 100, 0, 1)
    data_mb, model_mb = sizes_mb(model, data, 100)
    assert data_mb == pytest.approx((features.nbytes + labels.nbytes) / 1e6)
    assert model_mb == pytest.approx(trainer(model, data).initial(0).nbytes / 1e6)


def test_deep_features_are_never_negative_and_mostly_zero():
    features, _ = partition("yfcc", 256, 0, 1)
    assert features.min() == 0.0
    assert 0.5 < (features == 0).mean() < 0.9


def test_collisions_have_the_traits_of_the_higgs_set():
    features, labels = partition("higgs", 20_000, 0, 1)
    assert labels.mean() == pytest.approx(0.53, abs=0.02)
    assert features[:, [0, 3, 5, 9, 13, 17]].mean(axis=0) == pytest.approx(1.0, abs=0.05)
    assert set(np.unique(features[:, [8, 12, 16, 20]]).round(2)) == {0.0, np.float32(1.09), np.float32(2.17)}
    signal, background = features[labels == 1, 21:], features[labels == 0, 21:]
    assert (signal.mean(axis=0) < background.mean(axis=0)).all()
    assert (signal.std(axis=0) < background.std(axis=0)).all()
