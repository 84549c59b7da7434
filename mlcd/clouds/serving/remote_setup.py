"""The files and commands that set up a rented machine for a serving trial: MLCD's code, packages, the model, the trial.

`~/.mlcd_launch/mlcd/`         the code of this MLCD
`~/.mlcd_launch/trial.json`    the job and the launch, read by `remote_trial.py`
`~/.mlcd_launch/requirements.txt`
`~/.mlcd_server/`              a virtual environment with these packages
`~/.mlcd_model/`               the model, and its external weights if any
"""

from dataclasses import replace
from functools import cache
from importlib.metadata import requires
from pathlib import Path
from typing import Any

from mlcd.clouds import servers
from mlcd.clouds.serving.remote_trial import MODEL, TRIAL, dumped
from mlcd.clouds.skypilot.task import SHIPPED
from mlcd.core.backend import Launch
from mlcd.core.job import Job
from mlcd.planners.serve.nouns import INSTANCE, ServerSettings, knobs_of, service_of
from mlcd.planners.serve.operators.onnx_file import files_of

ENVIRONMENT = "~/.mlcd_server"
SETUP = f"""\
[ -x {ENVIRONMENT}/bin/python ] || ~/.local/bin/uv venv -q --python '>=3.11' {ENVIRONMENT}
~/.local/bin/uv pip install -q --python {ENVIRONMENT}/bin/python -r {SHIPPED}/requirements.txt
"""
"""Uses the uv that SkyPilot installs for itself, since MLCD needs a newer Python than many images have."""
RUN = f"PYTHONPATH={SHIPPED} exec {ENVIRONMENT}/bin/python -m mlcd.clouds.serving.remote_trial {SHIPPED}/{TRIAL}"


def requirements() -> list[str]:
    """The packages that MLCD needs to serve."""
    needed = [each for each in requires("mlcd") or () if "extra ==" not in each or 'extra == "serve"' in each]
    return sorted(each.partition(";")[0].strip() for each in needed)


def trial_task(job: Job) -> dict[str, Any]:
    """The trial of a job as a SkyPilot task: the commands to run, and the model's files to copy."""
    model = Path(job.folder) / service_of(job).path
    mounts = {f"{MODEL}/{name}": str(path.resolve()) for name, path in files_of(model).items()}
    return {"setup": SETUP, "run": RUN, "file_mounts": mounts}


def trial_files(job: Job, launch: Launch) -> dict[str, str]:
    """The files of a trial, by their path in the folder that is copied."""
    service, configuration = service_of(job), launch.configuration
    knobs = tuple((name, value) for name, value in knobs_of(configuration) if name != INSTANCE)
    remote_launch = replace(
        launch,
        configuration=replace(configuration, setting=ServerSettings(knobs)),
        lifetime_s=service.trial_s,  # without the time until the machine is up
    )
    remote_job = replace(job, folder="", ask=replace(service, path=Path(service.path).name))
    return {TRIAL: dumped(remote_job, remote_launch), "requirements.txt": "\n".join(requirements()), **_code()}


@cache
def _code() -> dict[str, str]:
    package = Path(servers.__file__).parents[2]
    paths = sorted(package.rglob("*.py"))
    return {f"mlcd/{path.relative_to(package)}": path.read_text(encoding="utf-8") for path in paths}
