"""A trial on the machine that was rented for it: the server, and beside it the load. A program.

It prints what happens as lines (`wire.py`), and ends with the trial.
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
"""The folder of the model there."""
STATE = "~/.mlcd_state"
TRIALS: TypeAdapter[tuple[Job, Launch]] = TypeAdapter(tuple[Job, Launch], config=ConfigDict(ser_json_inf_nan="strings"))


def dumped(job: Job, launch: Launch) -> str:
    """A trial as the text that is read there."""
    return TRIALS.dump_json((job, launch)).decode()


def main(trial: Path, model: Path, state: Path) -> None:
    """Serve the model of this folder, load it, and print what happens."""
    from mlcd.clouds.serving.live import Embedded
    from mlcd.planners.serve.nouns import service_of

    job, launch = TRIALS.validate_json(trial.read_bytes())
    service = service_of(job)
    job = replace(job, ask=replace(service, path=str(model / service.path)))
    for event in Embedded(state, WallClock(datetime.now(UTC))).run(job, launch):
        print(*lines_of(event), sep="\n", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(MODEL).expanduser(), Path(STATE).expanduser())
