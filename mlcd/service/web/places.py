"""Where a submitted job may run, and checks that it cannot reach the service's files.

A request names places and recordings, never paths. Paths in a job file refer to the user's machine: in ui mode that is
this machine, in a service they are refused.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlcd.core.errors import UnknownName, UserError
from mlcd.core.job import SUBMITTED, Job, only_computed
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.serve.known_models import knowledge_bases
from mlcd.planners.serve.nouns import ServingTask
from mlcd.service.web.state import Settings

NAMED = ("skypilot", "functions")  # kinds of places with a cloud or a platform after the colon
SERVING = ("local", "recorded")
SERVING_UPLOADS = "local"
_WORD = re.compile(r"[a-z0-9][a-z0-9_-]{0,30}")
_CLOUD_URL = re.compile(r"(s3|gs|r2|cos|oci|azure)://|https://[a-z0-9]+\.blob\.core\.windows\.net/")
NO_FILES = "a service has no files of yours; fetch them in `setup:`, or mount a bucket, such as s3://my-bucket"


def internal_place(on: str, settings: Settings) -> str:
    """The place of a request in MLCD's own terms: `recorded:NAME` with its path instead of the name."""
    kind, colon, rest = on.partition(":")
    if on == "functions:simulated" and "simulated" in settings.places:
        return on
    if kind not in settings.places:
        raise UnknownName("place", kind[:80], settings.places)
    if kind == "recorded":
        if rest not in settings.recordings:
            raise UnknownName("recording", rest[:80], settings.recordings)
        return f"recorded:{settings.recordings[rest]}"
    if colon and (kind not in NAMED or not _WORD.fullmatch(rest)):
        raise UserError(f"on '{on[:80]}': a request cannot name a file; use '{kind}'")
    return on


def public_place(on: str, settings: Settings) -> str:
    """A place as members see it: a recording by its name, never a path of this machine."""
    kind, _, rest = on.partition(":")
    if kind == "recorded":
        names = {str(path): name for name, path in settings.recordings.items()}
        return f"recorded:{names.get(rest, Path(rest).name)}"
    return kind if rest and kind not in NAMED else on


def confined(job: Job, settings: Settings) -> Job:
    """The job at an allowed place, without access to this machine's files; `UserError` if it needs that."""
    on = internal_place(job.on, settings)
    kind = on.partition(":")[0]
    if isinstance(job.ask, ServingTask):
        if kind not in SERVING:
            raise UnknownName("place to serve at", on[:80], SERVING)
        if job.ask.knowledge:
            _check_knowledge(job.ask.knowledge, settings)
    if settings.mode == "ui":
        return replace(job, on=on, folder=str(Path.cwd()))
    _check_classes(job)
    if not only_computed(on):
        _check_settings(job)
        for what in _local_paths(job):
            raise UserError(f"{what}: {NO_FILES}")
    return replace(job, on=on, folder=SUBMITTED)


def check_uploads(settings: Settings) -> None:
    """Refuse uploads if this service cannot serve them."""
    if SERVING_UPLOADS not in settings.places:
        raise UserError(f"this service takes no models: none is served here (--places has no '{SERVING_UPLOADS}')")


def _check_knowledge(name: str, settings: Settings) -> None:
    known = knowledge_bases(settings.home / "knowledge").readers()
    if name not in known:
        raise UnknownName("knowledge base", name[:80], known)


def _check_classes(job: Job) -> None:
    """Refuse `module:Class`, which is code in a job's folder: a service has none."""
    workload = job.ask.workload if isinstance(job.ask, FunctionsTask) else None
    for name in (workload.model, workload.data) if workload is not None else ():
        if ":" in name:
            raise UserError(f"'{name[:80]}': classes of your own are read from a job's folder; a service has none")


def _check_settings(job: Job) -> None:
    """Refuse parts of a task that would read or change the settings and the environment of the service."""
    mounts = job.task.get("file_mounts")
    blocks = [job.task.get("resources"), *(mounts.values() if isinstance(mounts, dict) else ())]
    hidden = [str(key) for each in blocks if isinstance(each, dict) for key in each if str(key).startswith("_")]
    if job.task.get("config") is not None or hidden:  # SkyPilot's own settings, which can contain commands
        raise UserError(f"{hidden[0][:80] if hidden else 'config'}: a service has settings of its own; leave it out")
    if job.task.get("secrets"):  # only names are stored: the values would come from the worker's environment
        raise UserError("secrets: a service knows none of yours; let the job fetch them where it runs")
    unset = [str(name) for name, value in (job.task.get("envs") or {}).items() if value is None]
    if unset:
        raise UserError(f"envs {unset[0][:80]}: a service passes none of its variables on; write the value")


def _local_paths(job: Job) -> Iterator[str]:
    """Parts of a task that refer to files of the submitting machine."""
    workdir = job.task.get("workdir")
    if workdir is not None:  # a git URL, too: SkyPilot would fetch it from here with the service's token
        yield f"workdir '{workdir[:80]}'" if isinstance(workdir, str) else "workdir"
    mounts = job.task.get("file_mounts") or {}
    for path, source in mounts.items() if isinstance(mounts, dict) else [("", mounts)]:
        named = source.get("source") if isinstance(source, dict) else source
        if not _is_in_cloud(named) and not (isinstance(source, dict) and named is None):
            yield f"file_mounts '{str(path)[:80]}'"


def _is_in_cloud(source: Any) -> bool:
    sources = source if isinstance(source, list) else [source]
    return bool(sources) and all(isinstance(each, str) and _CLOUD_URL.match(each) for each in sources)
