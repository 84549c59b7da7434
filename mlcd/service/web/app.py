"""The FastAPI app: the API under /api/v1, the pages everywhere else."""

from __future__ import annotations

import errno
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from mlcd.core.errors import MlcdError
from mlcd.core.version import VERSION
from mlcd.service.web.answers import MEANING
from mlcd.service.web.expecting import Expecting
from mlcd.service.web.failures import refusal
from mlcd.service.web.pages import pages
from mlcd.service.web.routes import (
    catalog,
    control,
    explore,
    files,
    health,
    runs,
    session,
    spend,
    submit,
    team,
    uploads,
    watch,
)
from mlcd.service.web.safety import protect
from mlcd.service.web.state import State
from mlcd.service.web.views import Views

API = "/api/v1"
TAGS = [
    {"name": "runs", "description": "The runs of the ledger: what they tried, decided, cost."},
    {"name": "watch", "description": "What happens, as server-sent events."},
    {"name": "explore", "description": "Other goals, decided again from stored probes, at no cost."},
    {"name": "files", "description": "Reports, logs and deployments."},
    {"name": "catalog", "description": "Offers, learned models, examples."},
    {"name": "submit", "description": "New runs, and models to serve."},
    {"name": "control", "description": "Launch, resume, stop, take down."},
    {"name": "session", "description": "Who asks."},
    {"name": "team", "description": "Members, budgets, the audit log."},
    {"name": "service", "description": "The service itself."},
]
LONGEST_LINE = 300
"""Of a complaint that repeats a name that was sent."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
_UNSENT = ("HTTPValidationError", "ValidationError")
_LOG = logging.getLogger("mlcd.service.web")


def create_app(state: State) -> FastAPI:
    """The app of one service. Its feed runs while the app does."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with state.feed.running():
            yield

    app = FastAPI(
        title="MLCD",
        version=VERSION,
        description="Finds the right cloud configuration for a machine-learning job within budget and deadline.",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # its pages would load scripts from elsewhere
        redoc_url=None,
        openapi_tags=TAGS,
        lifespan=lifespan,
        generate_unique_id_function=_operation,
        redirect_slashes=False,
    )
    app.state.mlcd = replace(state, crew=Expecting(state.crew, state.feed))
    app.state.views = Views(state.feed)
    for part in (health, session, runs, watch, explore, files, catalog, spend, submit, uploads, control, team):
        app.include_router(part.router, prefix=API)
    app.router.default = pages()
    app.add_exception_handler(MlcdError, _refuse)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _plain)
    app.add_exception_handler(OSError, _no_room)
    app.add_exception_handler(Exception, _fault)
    protect(app, state)
    _leave_out_what_is_never_sent(app.openapi())
    return app


def _operation(route: APIRoute) -> str:
    """A route's name in the OpenAPI document: its function's."""
    return route.name


def said(status: int, line: str, headers: dict[str, str] | None = None, **told: object) -> JSONResponse:
    """An answer that is no success."""
    return JSONResponse({"error": " ".join(line.split()), **told}, status, headers)


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, MlcdError)
    found = refusal(error)
    return said(found.status, str(found), found.headers, **found.told)


async def _malformed(request: Request, error: Exception) -> Response:
    """The first mistake is enough for one line; what was sent is not repeated."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return said(400, f"{where}: {first['msg']}"[:LONGEST_LINE])


async def _plain(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers) if error.headers else {}
    if error.status_code == 405:  # the framework names those of one route; a path may have several
        headers["Allow"] = ", ".join(_methods(request.app, request.url.path))
    return said(error.status_code, MEANING.get(error.status_code, str(error.detail)), headers)


def _leave_out_what_is_never_sent(document: dict[str, Any]) -> None:
    """The framework's own complaint about a malformed request: here that is a 400, as every route says."""
    for methods in document["paths"].values():
        for told in methods.values():
            schema = told["responses"].get("422", {}).get("content", {}).get("application/json", {}).get("schema", {})
            if schema.get("$ref", "").endswith(_UNSENT[0]):
                del told["responses"]["422"]
    for name in _UNSENT:
        document["components"]["schemas"].pop(name, None)


def _methods(app: FastAPI, path: str) -> list[str]:
    """What the API has at a path."""
    found = (told for each, told in app.openapi()["paths"].items() if compile_path(each)[0].match(path))
    return sorted({method.upper() for told in found for method in told})


async def _no_room(request: Request, error: Exception) -> Response:
    """A disk that is full, or that may not be written to, is no fault of ours, and no secret."""
    if not isinstance(error, OSError) or error.errno not in NO_ROOM:
        raise error
    _LOG.error("%s %r: %s", request.method, request.url.path, error)
    return said(503, f"the service cannot write to its disk ({error.strerror}); nothing was kept")


async def _fault(request: Request, error: Exception) -> Response:
    _LOG.error("%s %r: %r", request.method, request.url.path, error)  # where: the server tells, once it is here
    return said(500, "a fault of the service; its log says more")
