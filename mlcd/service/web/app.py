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
from starlette.types import Lifespan

from mlcd.core.errors import MlcdError
from mlcd.core.version import VERSION
from mlcd.service.web.answers import MEANING
from mlcd.service.web.failures import refusal
from mlcd.service.web.notifying_crew import NotifyingCrew
from mlcd.service.web.openapi import describe
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
"""Of an error message: it may repeat a name from the request."""
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
_LOG = logging.getLogger("mlcd.service.web")


def create_app(state: State) -> FastAPI:
    """The app of one service. Its feed runs as long as the app."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with state.feed.running():
            yield

    app = _routed(lifespan)
    app.state.mlcd = replace(state, crew=NotifyingCrew(state.crew, state.feed))
    app.state.views = Views(state.feed)
    app.router.default = pages()
    app.add_exception_handler(MlcdError, _refuse)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _plain)
    app.add_exception_handler(OSError, _disk_full)
    app.add_exception_handler(Exception, _internal_error)
    protect(app, state)
    describe(app)
    return app


def api_document() -> dict[str, Any]:
    """What every service says of its API, without one: OpenAPI."""
    return describe(_routed())


def _routed(lifespan: Lifespan[FastAPI] | None = None) -> FastAPI:
    app = FastAPI(
        title="MLCD",
        version=VERSION,
        description="Finds the right cloud configuration for a machine-learning job within budget and deadline.",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # they load scripts from other sites
        redoc_url=None,
        openapi_tags=TAGS,
        lifespan=lifespan,
        generate_unique_id_function=_operation,
        redirect_slashes=False,
    )
    for part in (health, session, runs, watch, explore, files, catalog, spend, submit, uploads, control, team):
        app.include_router(part.router, prefix=API)
    return app


def _operation(route: APIRoute) -> str:
    """A route's name in the OpenAPI document: the name of its function."""
    return route.name


def problem(status: int, line: str, headers: dict[str, str] | None = None, **extra: object) -> JSONResponse:
    """An error response."""
    return JSONResponse({"error": " ".join(line.split()), **extra}, status, headers)


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, MlcdError)
    refused = refusal(error)
    return problem(refused.status, str(refused), refused.headers, **refused.extra)


async def _malformed(request: Request, error: Exception) -> Response:
    """Only the first mistake, in one line, without the value that was sent."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return problem(400, f"{where}: {first['msg']}"[:LONGEST_LINE])


async def _plain(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers) if error.headers else {}
    if error.status_code == 405:  # the framework lists those of one route; a path may have several
        headers["Allow"] = ", ".join(_methods(request.app, request.url.path))
    return problem(error.status_code, MEANING.get(error.status_code, str(error.detail)), headers)


def _methods(app: FastAPI, path: str) -> list[str]:
    """The methods of a path."""
    matches = (methods for each, methods in app.openapi()["paths"].items() if compile_path(each)[0].match(path))
    return sorted({method.upper() for methods in matches for method in methods})


async def _disk_full(request: Request, error: Exception) -> Response:
    """A full or read-only disk: 503 with the reason, which is no secret."""
    if not isinstance(error, OSError) or error.errno not in DISK_ERRORS:
        raise error
    _LOG.error("%s %r: %s", request.method, request.url.path, error)
    return problem(503, f"the service cannot write to its disk ({error.strerror}); nothing was kept")


async def _internal_error(request: Request, error: Exception) -> Response:
    _LOG.error("%s %r: %r", request.method, request.url.path, error)  # the server logs the stack trace
    return problem(500, "an internal error of the service; see its log")
