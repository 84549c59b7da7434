"""For operators: liveness, readiness and metrics. Not part of the OpenAPI document."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from mlcd.core.errors import LedgerError
from mlcd.service.web.errors import Refusal, public_message
from mlcd.service.web.identity import Viewer
from mlcd.service.web.state import CurrentState, State

router = APIRouter(include_in_schema=False)
READY_S = 10.0  # timeout of the database in the readiness check
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
NO_STORE = {"Cache-Control": "no-store"}


@router.get("/healthz")
async def healthz() -> Response:
    """Alive: the process answers. An unreachable database is no reason to restart it."""
    return JSONResponse({"ok": True}, headers=NO_STORE)


@router.get("/readyz")
async def readyz(state: CurrentState) -> Response:
    """503 with the reasons while the database does not answer, or no worker has a recent heartbeat."""
    checks = await _checks(state)
    ready = not any(checks.values())
    answer = {"ready": ready, "checks": {name: trouble or "ok" for name, trouble in checks.items()}}
    return JSONResponse(answer, 200 if ready else 503, headers=NO_STORE)


async def _checks(state: State) -> dict[str, str]:
    """What is wrong with each part; '' if nothing is."""
    try:
        async with asyncio.timeout(READY_S):
            trouble: Any = await run_in_threadpool(state.missing_workers)
    except (LedgerError, TimeoutError) as error:
        why = public_message(error) if isinstance(error, LedgerError) else f"no answer within {READY_S:.0f} s"
        return {"database": why, "workers": "unknown: the database does not answer"}
    return {"database": state.feed.read_error, "workers": trouble}


@router.get("/metrics")
async def metrics(request: Request, state: CurrentState, who: Viewer) -> Response:
    """Metrics for Prometheus. Any member's token is enough: every member may see these figures anyway."""
    if request.app.state.metrics is None:
        raise Refusal(404, "`mlcd ui` has no metrics; `mlcd service` has")
    roster, summaries = await run_in_threadpool(state.executor.roster), state.feed.summaries()
    return Response(
        request.app.state.metrics.page(summaries, roster), headers={**NO_STORE, "Content-Type": METRICS_TYPE}
    )
