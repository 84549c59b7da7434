"""Models and data by name: MLCD's own, the job's own, and invalid names."""

from __future__ import annotations

import sys
import textwrap

import numpy as np
import pytest
from mlcd_fixtures.partitions import partition

from mlcd.core.errors import UnknownName, UserError
from mlcd.planners.functions.workloads import sizes_mb, trainer

NET = """
    from __future__ import annotations
    from dataclasses import dataclass
    import numpy as np
    from distance import squared

    @dataclass
    class Mean:
        shape: tuple[int, ...]
        classes: int
        pull: float = 1.0

        @property
        def size(self):
            return self.shape[0]

        def initial(self, seed):
            return np.zeros(self.size, np.float32)

        def loss(self, parameters, features, labels):
            return float(squared(features - parameters).mean())

        def gradient(self, parameters, features, labels):
            return self.loss(parameters, features, labels), self.pull * (parameters - features.mean(axis=0))

    class Counting:
        shape = (3,)
        classes = 2

        def rows(self, first, last, seed):
            numbers = np.arange(first, last, dtype=np.float32)
            return np.stack([numbers] * 3, axis=1), (numbers % 2).astype(np.int32)

    class Half:
        def __init__(self, shape, classes):
            self.size = 1

    class Failing:
        def __init__(self, shape, classes):
            raise RuntimeError("no\\nway")
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "net.py").write_text(textwrap.dedent(NET))
    (tmp_path / "distance.py").write_text("def squared(x):\n    return (x ** 2).sum(axis=1) / 2\n")
    (tmp_path / "broken.py").write_text("import no_such_thing\n")
    yield str(tmp_path)
    sys.modules.pop("distance", None)


def test_classes_beside_the_job_file_are_used_as_model_and_data(folder):
    before = list(sys.path)
    model = trainer("net:Mean", "net:Counting", folder, pull=0.5)
    features, labels = partition("net:Counting", 11, 0, 1, folder=folder)
    loss, found = model.gradient(model.initial(0), features, labels)
    assert found == pytest.approx(np.full(3, -2.5))
    assert loss == pytest.approx(model.loss(model.initial(0), features, labels))
    assert sizes_mb("net:Mean", "net:Counting", 1_000, folder) == (0.016, 12e-6)
    assert sys.path == before
    assert "net" not in sys.modules


def test_a_class_stays_the_same_from_call_to_call_until_its_file_changes(folder, tmp_path):
    first, again = (trainer("net:Mean", "higgs", folder) for _ in range(2))
    assert type(first) is type(again)
    (tmp_path / "net.py").write_text(textwrap.dedent(NET).replace("pull: float = 1.0", "pull: float = 1.25"))
    assert trainer("net:Mean", "higgs", folder).pull == 1.25


def test_two_jobs_may_both_have_a_module_of_one_name(tmp_path):
    for name, classes in (("one", 2), ("two", 2)):
        (tmp_path / name).mkdir()
        body = f"class Rows:\n    shape = ({len(name)}, {ord(name[0])})\n    classes = {classes}\n    rows = None\n"
        (tmp_path / name / "data.py").write_text(body)
    sizes = [trainer("lr", "data:Rows", str(tmp_path / name)).size for name in ("one", "two")]
    assert sizes == [3 * ord("o") + 1, 3 * ord("t") + 1]


@pytest.mark.parametrize(
    ("model", "data", "words"),
    [
        ("svn", "higgs", "unknown model 'svn': did you mean 'svm'?"),
        ("lr", "higs", "unknown data 'higs': did you mean 'higgs'?"),
        ("nets:Mean", "higgs", "nets.py"),
        ("net:Maen", "higgs", "did you mean 'Mean'?"),
        ("net:squared", "higgs", "unknown class in"),
        ("broken:Net", "higgs", "cannot be imported: ModuleNotFoundError: No module named 'no_such_thing'"),
        (
            "net:Half",
            "higgs",
            "model 'net:Half' lacks initial, gradient, loss: see mlcd.planners.functions.workloads.Trainer",
        ),
        ("lr", "net:Half", "data 'net:Half' cannot be built"),
        ("net:Failing", "higgs", "model 'net:Failing' cannot be built: RuntimeError: no way"),
        ("../net:Mean", "higgs", "write it as module:Class"),
        ("net:", "higgs", "write it as module:Class"),
    ],
)
def test_an_invalid_name_is_refused_with_a_one_line_reason(folder, model, data, words):
    with pytest.raises(UserError) as refused:
        trainer(model, data, folder)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not [name for name in sys.modules if name.endswith("_broken")]


@pytest.mark.parametrize("model", ["lr", "net:Mean"])
def test_a_hyperparameter_that_a_model_does_not_take_is_refused(folder, model):
    with pytest.raises(UnknownName, match=f"unknown hyperparameter of model '{model}' 'l1'"):
        trainer(model, "higgs", folder, l1=0.1)
