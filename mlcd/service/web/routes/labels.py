"""Labels of runs: change those of a run, for its owner and admins; list those in use."""

import asyncio
from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from mlcd.core.ledger import Labels, LabelUpdate
from mlcd.core.ledger.labels import LONGEST_NOTE, MOST_TAGS
from mlcd.core.part import Part
from mlcd.service.team.members import Member
from mlcd.service.web.errors import RequestBody, error_responses
from mlcd.service.web.identity import Runner, Viewer, audited
from mlcd.service.web.routes.control import owned
from mlcd.service.web.state import CurrentState, State

router = APIRouter(tags=["labels"])
Named = Annotated[str, Path(max_length=200, description="A run's name; `last` is the newest.")]
Word = Annotated[str, Field(max_length=200)]
Words = Annotated[list[Word], Field(max_length=MOST_TAGS)]


class LabelChange(RequestBody):
    """A change of labels; what is not given stays. Projects and tags are words without spaces and commas."""

    project: Word | None = Field(default=None, description="The project; empty for none.")
    add_tags: Words = Field(default=[], description="Tags to add.")
    remove_tags: Words = Field(default=[], description="Tags to remove.")
    note: Annotated[str, Field(max_length=2 * LONGEST_NOTE)] | None = Field(
        default=None, description="A note in plain text; empty for none."
    )
    archived: bool | None = Field(default=None, description="Whether lists hide it; not possible while it is active.")


class RunLabels(Part):
    """The labels of a run."""

    run: str = Field(description="The run's name.")
    project: str | None = Field(description="Its project; null for none.")
    tags: tuple[str, ...] = Field(description="Its tags.")
    note: str = Field(description="Its note, in plain text.")
    archived: bool = Field(description="Whether lists hide it.")


class LabelUse(Part):
    """A project or tag, and how many runs have it."""

    name: str = Field(description="The project or tag.")
    runs: int = Field(description="Its number of runs, archived ones included.")


class LabelsInUse(Part):
    """All projects and tags in use."""

    projects: list[LabelUse] = Field(description="By name.")
    tags: list[LabelUse] = Field(description="By name.")


@router.get("/labels", summary="Projects and tags in use", responses=error_responses())
async def labels_in_use(state: CurrentState, who: Viewer) -> LabelsInUse:
    """Of all runs."""
    runs = state.feed.summaries()
    projects = Counter(each.project for each in runs if each.project is not None)
    tags = Counter(tag for each in runs for tag in each.tags)
    return LabelsInUse(projects=_used(projects), tags=_used(tags))


@router.patch("/runs/{run}/labels", summary="Change a run's labels", responses=error_responses(404, 409, 413, 415, 422))
async def label_run(run: Named, body: LabelChange, state: CurrentState, who: Runner) -> RunLabels:
    """Its project, tags and note, and whether it is archived. Members change those of their own runs, admins of all."""
    name, labels = await asyncio.to_thread(_relabelled, state, who, run, body)
    await state.feed.catch_up(with_state=True)  # so that the next request of this member shows the change
    return RunLabels(run=name, project=labels.project, tags=labels.tags, note=labels.note, archived=labels.archived)


def _relabelled(state: State, who: Member | None, run: str, body: LabelChange) -> tuple[str, Labels]:
    with audited(state, who, "label", run) as note:
        note.about = name = owned(state, who, run)
        change = LabelUpdate.of(**body.model_dump())
        note.detail = change.words
        return name, state.ledger.label(name, change, who.name if who is not None else None)


def _used(counts: Counter[str]) -> list[LabelUse]:
    return [LabelUse(name=name, runs=counts[name]) for name in sorted(counts)]
