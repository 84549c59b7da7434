"""Callbacks for scripts without their own training loop, with the real frameworks if they are installed."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import mlcd_tracker
from mlcd.clouds.frameworks import ProgressReader
from mlcd.core.job import Job

pytestmark = pytest.mark.live

ROOT = Path(mlcd_tracker.__file__).parents[1]

KERAS = """
import keras, numpy as np
from mlcd_tracker.keras import Tracker
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
keep = keras.callbacks.ModelCheckpoint("kept.keras")
model.fit(np.ones((96, 4)), np.ones(96), batch_size=32, epochs=2, verbose=0, callbacks=[keep, Tracker(32, saves=True)])
"""
LIGHTNING = """
import lightning.pytorch as pl, torch
from mlcd_tracker.lightning import Tracker
class Line(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, _):
        return self.layer(batch[0]).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(96, 4)), batch_size=32)
keep = pl.callbacks.ModelCheckpoint(dirpath="kept")
pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
           callbacks=[Tracker(32), keep]).fit(Line(), data)
"""
TRANSFORMERS = """
import os, torch, transformers
from mlcd_tracker.plan import Plan
from mlcd_tracker.transformers import Tracker, planned
class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def forward(self, x):
        return {"loss": self.layer(x).square().mean()}
data = [{"x": torch.ones(4)} for _ in range(192)]
os.environ |= {"MLCD_MICRO_BATCH": "16", "MLCD_GLOBAL_BATCH": "32", "MLCD_TARGET": "<=1000.0"}
plan = Plan.told(precision="fp32")
again = planned(Plan(2, 8, checkpointing="full", precision="bf16"))
assert again["bf16"] and again["gradient_checkpointing"] and again["gradient_accumulation_steps"] == 4
shards = planned(Plan(2, 8, "zero2", "full"), "Layer")
assert shards["fsdp"] and shards["fsdp_config"]["activation_checkpointing"]
assert not shards["fsdp_config"]["reshard_after_forward"] and "gradient_checkpointing" not in shards
os.environ["WORLD_SIZE"] = "8"
elastic = planned(Plan.told({"MLCD_BATCH": "16"}, micro_batch=4, precision="fp32"))
assert elastic["per_device_train_batch_size"] == 2 and elastic["gradient_accumulation_steps"] == 1
del os.environ["WORLD_SIZE"]
try:
    planned(Plan(2, 8, tensor=2))
    raise AssertionError("the Trainer does not know how")
except ValueError as error:
    assert "tensor 2" in str(error)
arguments = transformers.TrainingArguments("kept", num_train_epochs=1, use_cpu=True, report_to=[], save_steps=3,
    disable_tqdm=True, **planned(plan))
transformers.Trainer(Line(), arguments, train_dataset=data, callbacks=[Tracker()]).train()
control = transformers.TrainerControl()
Tracker("eval_loss").on_evaluate(arguments, None, control, metrics={"eval_loss": 3.5})
assert control.should_save and control.should_training_stop
"""


@pytest.mark.parametrize(
    ("package", "source"),
    [pytest.param("keras", KERAS, marks=pytest.mark.night), ("lightning", LIGHTNING), ("transformers", TRANSFORMERS)],
    ids=["keras", "lightning", "transformers"],
)
def test_a_callback_reports_every_step_and_every_checkpoint(package: str, source: str, tmp_path: Path):
    if find_spec(package) is None or (package == "keras" and find_spec("tensorflow") is None):
        pytest.skip(f"{package} is not installed: pip install -e '.[frameworks]'")
    done = subprocess.run(
        [sys.executable, "-c", source],
        env={"MLCD_LAUNCH": "run-1", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [(sample.samples, sample.saved) for sample in ProgressReader(Job("job", 192.0)).feed(done.stdout, 0.0)]
    assert told[-1] == (192, 192), done.stdout
    assert 96 in {saved for _, saved in told}


def test_no_framework_is_imported_unless_its_callback_is():
    code = "import sys, mlcd_tracker; print({'keras', 'lightning', 'transformers', 'torch'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
