"""Comparing int8 with fp32: samples in three formats, three measures, one line for each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.clouds.servers.agreement import agreement, compared
from mlcd.clouds.servers.samples import read_samples
from mlcd.core.errors import UserError
from mlcd.planners.serve.operators import open_model

RNG = np.random.default_rng(0)
TOKENS = RNG.integers(0, 50, (40, 6))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    onnx = pytest.importorskip("onnx", reason="pip install 'mlcd[serve]'")
    pytest.importorskip("onnxruntime", reason="pip install 'mlcd[serve]'")
    from mlcd_bench.learn.zoo import recurrent

    path = tmp_path_factory.mktemp("model") / "lstm.onnx"
    onnx.save(recurrent(width=8, sequence=6), str(path))
    return path


def written(folder: Path, name: str) -> Path:
    """The same samples in each form that can be read."""
    path = folder / name
    if name == "one.npz":
        np.savez(path, tokens=TOKENS)
    elif name.endswith(".jsonl"):
        lines = [{"tokens": row.tolist()} if name == "named.jsonl" else row.tolist() for row in TOKENS]
        path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    else:
        path.mkdir()
        files = {"tokens": TOKENS} if name == "by input" else {f"{i:02}": row for i, row in enumerate(TOKENS)}
        for stem, values in files.items():
            np.save(path / f"{stem}.npy", values)
    return path


@pytest.mark.parametrize("name", ["one.npz", "named.jsonl", "bare.jsonl", "by input", "by sample"])
def test_every_form_of_samples_is_read_alike(model: Path, tmp_path: Path, name: str) -> None:
    found = read_samples(written(tmp_path, name), open_model(model))
    assert list(found) == ["tokens"]
    np.testing.assert_array_equal(found["tokens"], TOKENS)
    assert str(found["tokens"].dtype) == open_model(model).inputs[0].dtype


def test_int8_is_compared_with_the_model_itself(model: Path, tmp_path: Path) -> None:
    found = compared(model, written(tmp_path, "one.npz"), 0.99, tmp_path / "quantised")
    assert (found.samples, found.measure, found.least) == (40, "top class", 0.99)
    assert 0.5 < found.share <= 1
    assert f"same top class as fp32 on {100 * found.share:.4g} % of 40 inputs" in str(found)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("missing.npz", None, "no such file or folder"),
        ("text.npz", b"hello", "cannot be read as samples"),
        ("text.jsonl", b"hello", "cannot be read as samples"),
        ("numbers.jsonl", b"[1, 2]\n[1]", "cannot be read as samples"),
        ("other.jsonl", b'{"image": [1]}', "the model's inputs are tokens, not image"),
        ("empty.jsonl", b"", "the model's inputs are tokens, not none"),
        ("mixed.jsonl", b'{"tokens": [1]}\n{"x": [1]}', "do not name the same inputs"),
        ("short.jsonl", b"[1, 2]", "ONNX Runtime cannot run it"),
    ],
)
def test_a_mistake_in_samples_is_one_line(
    model: Path, tmp_path: Path, name: str, content: bytes | None, told: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=told) as error:
        compared(model, tmp_path / name, 0.99, tmp_path / "quantised")
    assert len(str(error.value).splitlines()) == 1


@given(st.sampled_from([(12, 4), (12, 3, 5), (12, 1)]), st.integers(0, 99))
def test_the_same_answers_agree_and_opposite_ones_do_not(shape: tuple[int, ...], seed: int) -> None:
    exact = np.random.default_rng(seed).standard_normal(shape)
    measure, same = agreement(exact, exact.copy())
    assert measure == {2: "top class", 3: "cosine"}[len(shape)] if shape[-1] > 1 else measure == "relative error"
    assert same == pytest.approx(1)
    assert agreement(exact, -exact)[1] < 0.99
    assert agreement(0 * exact, 0 * exact)[1] == 1


def test_a_few_other_top_classes_are_counted() -> None:
    exact = np.eye(10)
    rough = exact.copy()
    rough[:2] = exact[5]
    assert agreement(exact, rough) == ("top class", 0.8)
