"""From what a request sends to a run that waits for a worker; or to what that run would be.

Nothing of it is parsed in this process: a child reads the text and answers with a job as JSON (`web/reading`).
The job is then confined to the places and names that the service has (mlcd/service/web/places), and asked for in one
transaction with the check of its owner's budget (mlcd/service/team).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.runs.real_money import most_words, rents
from mlcd.planners.form.jobs import kinds
from mlcd.planners.form.words import parsed
from mlcd.planners.serve.nouns import serving_task
from mlcd.reports.words import goal_words
from mlcd.service.team import Member, left, submit
from mlcd.service.web.failures import Refusal
from mlcd.service.web.places import confined, is_free, placed, spoken
from mlcd.service.web.reading import SPACE, TEXT, in_a_child
from mlcd.service.web.reading.works import FACTS, foreseen, job_of_recorded, job_of_text, job_of_upload
from mlcd.service.web.state import State
from mlcd.service.web.uploads import Uploads, profiled
from mlcd.service.workers.asked import from_json, to_json

LONGEST_NAME = 200


@dataclass(frozen=True)
class Submission:
    """What a request asks for: a kind, a job file's text and options; to serve: a model, and a text of knobs.

    `upload`: the hash of a model that was sent before. `model`: the name of one in a recording. `yes`: whoever asks has
    seen what it may cost in real dollars, and agrees.
    """

    kind: str
    job: str
    options: dict[str, Any]
    launch: bool = False
    yes: bool = False
    upload: str | None = None
    model: str | None = None
    knobs: str | None = None
    name: str = "job.yaml"


@dataclass(frozen=True)
class Foreseen:
    """What would be run. `configurations`: None where only trying tells. `left_usd`: of its owner's budget; None where
    there is none, or where this run does not count against it.
    """

    job: str
    goal_words: str
    configurations: int | None
    types: list[str]
    on: str
    budget_usd: float | None
    left_usd: float | None


class NotAgreed(Refusal):
    """A run that would be billed in real dollars, and nobody has agreed to that yet: send it again with `yes`."""

    def __init__(self, words: str) -> None:
        super().__init__(409, f'{words} To agree, send it again with "yes": true', told={"asks": words})


def send(here: State, who: Member | None, asked: Submission) -> str:
    """Ask for the run, and tell the workers; its name."""
    job = read(here, asked)
    if rents(job.on) and not asked.yes:
        raise NotAgreed(most_words(job))
    free, most = _counts_nothing(here, job), here.settings.member_queued
    run = submit(here.ledger, who, job, to_json(job, asked.launch), free, most_queued=most)
    here.crew.send(run, asked.launch)
    return run


def check(here: State, who: Member | None, asked: Submission) -> Foreseen:
    """What `send` would do; nothing is reserved."""
    job = read(here, asked)
    found: dict[str, Any] = {"configurations": None, "types": []}
    if is_free(job.on):
        found = json.loads(in_a_child("the job", SPACE, foreseen, to_json(job, False)))
    return Foreseen(
        job.name,
        goal_words(job.goal, job.target, serving_task(job)),
        found["configurations"],
        [str(each) for each in found["types"]],
        spoken(job.on, here.settings),
        job.goal.budget_usd,
        None if _counts_nothing(here, job) else left(here.ledger, who).usd,
    )


def _counts_nothing(here: State, job: Job) -> bool:
    """A budget is about money; unless somebody wants to see how it works before there is any."""
    return is_free(job.on) and not here.settings.count_simulated


def read(here: State, asked: Submission) -> Job:
    """The job, read in a child and confined to what this service allows."""
    if asked.kind not in kinds():
        raise UserError(f"kind '{asked.kind[:80]}': expected {', '.join(kinds())}")
    if asked.kind == "serve":
        return _served(here, asked)
    if asked.upload is not None or asked.model is not None or asked.knobs is not None:
        raise UserError(f"upload, model and knobs are for serve, and this is {asked.kind}")
    told = in_a_child(asked.name, TEXT, job_of_text, asked.kind, asked.job, asked.options, asked.name)
    return confined(_named(from_json(told)[0]), here.settings)


def _served(here: State, asked: Submission) -> Job:
    if asked.job.strip():
        raise UserError("serve takes no job file: name an upload or a recorded model, and say the rest in options")
    chosen = parsed("serve", asked.options)
    on = str(chosen.get("on") or "local")
    place = placed(on, here.settings)
    kind, _, folder = place.partition(":")
    if kind == "recorded":
        if asked.model is None or asked.upload is not None:
            raise UserError(f"on '{on[:80]}': name a model of the recording in `model`, and no upload")
        told = in_a_child(asked.model, TEXT, job_of_recorded, asked.model, folder, asked.options, asked.knobs)
        return confined(_named(from_json(told)[0]), here.settings)
    if asked.upload is None or asked.model is not None:
        raise UserError("name an `upload`: send the model's file to /uploads first")
    uploads = Uploads(here.database, here.settings.home)
    upload = uploads.get(asked.upload)
    facts, shapes = upload.facts, dict(chosen.get("shapes") or {})
    if shapes or not facts.profiles:
        facts = profiled(facts, uploads.path(upload), upload.name, shapes)
    told = in_a_child(
        upload.name, TEXT, job_of_upload, FACTS.dump_json(facts).decode(), upload.word, asked.options, asked.knobs
    )
    return confined(_named(from_json(told)[0]), here.settings)


def _named(job: Job) -> Job:
    """With a name of a line that can be shown."""
    if not job.name.strip() or len(job.name) > LONGEST_NAME or not job.name.isprintable():
        raise UserError(f"name: 1 to {LONGEST_NAME} letters, all of them printable, and not only blanks")
    return job
