"""A program that runs one trial on the machine rented for it: the server and the load generator.

It prints the trial's events as lines (`event_lines.py`), and ends with the trial.
"""

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter

from mlcd.clouds.serving.event_lines import lines_of
from mlcd.core.backend import Launch
from mlcd.core.clock import WallClock
from mlcd.core.job import Job

TRIAL = "trial.json"
MODEL = "~/.mlcd_model"
"""The model's folder on that machine."""
STATE = "~/.mlcd_state"
TRIALS: TypeAdapter[tuple[Job, Launch]] = TypeAdapter(tuple[Job, Launch], config=ConfigDict(ser_json_inf_nan="strings"))


def dumped(job: Job, launch: Launch) -> str:
    """The text of `trial.json`: the job and the launch."""
    return TRIALS.dump_json((job, launch)).decode()


def main(trial: Path, model: Path, state: Path) -> None:
    """Serve the model in this folder, run the load test, and print the events."""
    from mlcd.clouds.serving.live import Embedded
    from mlcd.planners.serve.nouns import service_of

    job, launch = TRIALS.validate_json(trial.read_bytes())
    service = service_of(job)
    job = replace(job, ask=replace(service, path=str(model / service.path)))
    for event in Embedded(state, WallClock(datetime.now(UTC))).run(job, launch):
        print(*lines_of(event), sep="\n", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(MODEL).expanduser(), Path(STATE).expanduser())
