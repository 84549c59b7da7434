"""Export for MLServer: a folder with the settings and code of the trials, and a script that pins it to its cores."""

from __future__ import annotations

from mlcd.core.units import counted
from mlcd.planners.serve.targets import mlserver as written
from mlcd.reports.deploy.deployment import Deployment, Export, Part, header, readme

FIELDS = {
    Part.BATCH: "model-settings.json: max_batch_size",
    Part.WAIT: "model-settings.json: max_batch_time, in seconds",
    Part.THREADS: "model-settings.json: parameters.extra.threads",
    Part.CORES: "start.sh: taskset",
}
NOTES = {
    Part.CORES: "a process is pinned to whole cores: start it in a container of that size",
    Part.MEMORY: "MLServer limits no memory: start it in a container of that much (in 1e9 bytes)",
    Part.PRECISION: "MLServer serves the file that it is given: put the model there at this precision",
    Part.LOAD: "a setting of the load test, not of the server",
}


def mlserver(deployment: Deployment) -> Export:
    """The folder and the script that starts it."""
    to, main, start = "mlserver", "start.sh", "sh DIR/start.sh"
    cores, fields = deployment.cores, dict(FIELDS)
    if cores is None or cores != int(cores):
        del fields[Part.CORES]
        cores = None
    placed = deployment.placed(fields, NOTES, to)
    sizes = deployment.whole(Part.BATCH), deployment.number(Part.WAIT), deployment.whole(Part.THREADS)
    model_at = written.model_at(deployment.name)
    pinned = f"taskset -c 0-{int(cores) - 1} " if cores is not None else ""
    needs = "It needs `pip install mlserver onnxruntime`" + (f", and {counted(int(cores), 'core')}." if cores else ".")
    files = {
        main: f'#!/bin/sh\n{header(deployment, placed, to)}exec {pinned}mlserver start "$(dirname "$0")"\n',
        **written.files(deployment.name, *sizes),
        "README.md": readme(deployment, placed, to, model_at, start, needs),
    }
    return Export(files, main, placed, model_at, start, deployment.notes(to))
