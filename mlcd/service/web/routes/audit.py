"""The audit log, for admins: filtered, in pages or as a file."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from mlcd.core.part import Part
from mlcd.service.team.administration import AuditedAction, AuditFilter
from mlcd.service.team.audit_export import PAGE, Format, exported
from mlcd.service.web.errors import error_responses
from mlcd.service.web.identity import Admin, audited
from mlcd.service.web.state import CurrentState

router = APIRouter(tags=["team"])
MEDIA = {"csv": "text/csv", "jsonl": "text/plain"}
FILE = {"schema": {"type": "string"}}
FILES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": dict.fromkeys(MEDIA.values(), FILE)}
}


class AuditAnswer(Part):
    """A page of the audit log."""

    entries: list[AuditedAction] = Field(description="The newest first.")


def audit_filter(
    who: Annotated[str | None, Query(max_length=200, description="Only entries of this member or address.")] = None,
    action: Annotated[str | None, Query(max_length=200, description="Only this action, such as submit.")] = None,
    outcome: Annotated[Literal["ok", "refused"] | None, Query(description="Only entries with this outcome.")] = None,
    since: Annotated[str | None, Query(max_length=40, description="From this date or time on (ISO 8601, UTC).")] = None,
    until: Annotated[
        str | None, Query(max_length=40, description="Up to the end of this date, or before this time.")
    ] = None,
) -> AuditFilter:
    """The entries that are asked for."""
    return AuditFilter.read(who, action, outcome, since, until)


Only = Annotated[AuditFilter, Depends(audit_filter)]


@router.get("/audit", responses=error_responses(422))
def read_audit(
    state: CurrentState,
    who_asks: Admin,
    only: Only,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="Only those before this number.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000, description="The most entries to return.")] = 200,
) -> AuditAnswer:
    """Actions and refusals, the newest first."""
    return AuditAnswer(entries=state.audit.entries(limit, before, only))


@router.get("/audit/export", response_class=StreamingResponse, responses={**FILES, **error_responses(422)})
def export_audit(
    state: CurrentState,
    who_asks: Admin,
    only: Only,
    format: Annotated[Format, Query(description="csv, or a JSON object on each line.")] = "csv",
) -> StreamingResponse:
    """All entries that pass the filters, newest first, as a file. The export itself is audited, too."""
    with audited(state, who_asks, "export audit", format):
        state.audit.entries(1)  # a database that is away is an error, not an empty file
    pieces = exported(lambda before: state.audit.entries(PAGE, before, only), format)
    named = {"Content-Disposition": f'attachment; filename="mlcd-audit.{format}"'}
    return StreamingResponse(pieces, media_type=f"{MEDIA[format]}; charset=utf-8", headers=named)
