"""The FastAPI app: the API under /api/v1, the pages everywhere else."""

import asyncio
import errno
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import cache
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Route, compile_path
from starlette.types import Lifespan

from mlcd.core.errors import LedgerError, MissingExtra, MlcdError
from mlcd.core.version import VERSION
from mlcd.service.notifications.abandoned_runs import AbandonedRunDetector
from mlcd.service.notifications.delivery import NotificationDelivery
from mlcd.service.notifications.reader import NotificationReader
from mlcd.service.notifications.receivers import Receivers
from mlcd.service.notifications.senders import senders_by_kind
from mlcd.service.web.errors import STATUS_MEANINGS, Refusal, refusal
from mlcd.service.web.identity import OPEN
from mlcd.service.web.monitoring.request_log import RequestLog, Routes, note_refusal
from mlcd.service.web.pages import pages
from mlcd.service.web.routes import (
    audit,
    catalog,
    compare,
    control,
    explore,
    files,
    job_file,
    labels,
    logs,
    monitoring,
    notifications,
    rerun,
    runs,
    session,
    sign_in,
    submit,
    team,
    tokens,
    uploads,
    usage,
    watch,
    workers,
)
from mlcd.service.web.safety.gate import Gate
from mlcd.service.web.safety.limits import ConcurrencyLimits, RateLimits
from mlcd.service.web.safety.origin import COOKIE
from mlcd.service.web.state import State
from mlcd.service.web.views import Views

API = "/api/v1"
PARTS = (
    session, sign_in, runs, compare, watch, explore, files, logs, usage, catalog, submit, job_file, rerun, uploads,
    control, labels, workers, tokens, team, audit, notifications,
)  # fmt: skip
TAGS = [
    {"name": "runs", "description": "The runs of the ledger: probes, decisions and costs."},
    {"name": "watch", "description": "Server-sent events."},
    {"name": "explore", "description": "Decisions under other goals, from stored probes, at no cost."},
    {"name": "files", "description": "Reports, logs and deployments."},
    {"name": "catalog", "description": "Offers, learned models, examples."},
    {"name": "submit", "description": "New runs, and models to serve."},
    {"name": "labels", "description": "Labels of runs: projects, tags, notes, the archive."},
    {"name": "control", "description": "Launch, resume, stop, take down."},
    {"name": "workers", "description": "Workers, the runs that they drive, and the queue."},
    {"name": "session", "description": "Sign-in, and the current user."},
    {"name": "tokens", "description": "A member's own tokens."},
    {"name": "news", "description": "Notifications about runs, and their receivers."},
    {"name": "team", "description": "Members, budgets, the audit log."},
    {"name": "service", "description": "The service itself."},
]
_SESSION = "The cookie that POST /session sets in a browser. Requests that change something also need X-MLCD: 1."
_TOKEN = "A member's token, mlcd_...; `mlcd ui` has a single user and needs none."
SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": _TOKEN},
    "session": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": _SESSION},
}
LONGEST_LINE = 300  # of an error message, which may repeat a name from the request
ADOPT_EVERY_S, ADOPT_AFTER = 30.0, timedelta(minutes=1)  # see `_adopting_submissions`
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
_LOG = logging.getLogger("mlcd.service.web")


def create_app(state: State) -> FastAPI:
    """The app of one service. It runs the feed and the notifications as long as it is served."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with state.feed.running(), _sending_notifications(state), _adopting_submissions(state):
            yield

    app = _app_with_routes(lifespan)
    app.openapi = api_document  # type: ignore[method-assign]  # as FastAPI documents it
    app.state.mlcd, app.state.views = state, Views(state.feed)
    app.state.rates, app.state.concurrency = RateLimits(state.settings.limits), ConcurrencyLimits()
    app.router.default = pages()
    app.add_exception_handler(MlcdError, _mlcd_error)
    app.add_exception_handler(RequestValidationError, _malformed_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(OSError, _disk_full)
    app.add_exception_handler(Exception, _internal_error)
    app.add_middleware(Gate, state=state, rates=app.state.rates)
    _add_monitoring(app, state)
    return app


@cache
def api_document() -> dict[str, Any]:
    """The OpenAPI document: what FastAPI generates from the routes, adapted to this service.

    Cached, since generating it takes a while. FastAPI's 422 for malformed requests is removed: this service answers
    them with 400, which every route declares.
    """
    document = _app_with_routes().openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if "HTTPValidationError" in str(operation["responses"].get("422")):
                del operation["responses"]["422"]
            if (method.upper(), path) in OPEN:
                operation["security"] = []
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for schema in schemas.values():
        for each in schema.get("properties", {}).values():
            each.pop("title", None)  # 'Spent Usd' says no more than the property's name
    document["components"]["securitySchemes"] = SCHEMES
    document["security"] = [{name: []} for name in SCHEMES]
    return document


def _app_with_routes(lifespan: Lifespan[FastAPI] | None = None) -> FastAPI:
    app = FastAPI(
        title="MLCD",
        version=VERSION,
        description="Finds the right cloud configuration for a machine-learning job within budget and deadline.",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # they load scripts from other sites
        redoc_url=None,
        openapi_tags=TAGS,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,
    )
    for part in PARTS:
        app.include_router(part.router, prefix=API)
    app.include_router(monitoring.router)
    return app


@asynccontextmanager
async def _sending_notifications(state: State) -> AsyncIterator[None]:
    """Send news while the block runs; `mlcd ui` has none."""
    if state.members is None:
        yield
        return
    settings, now = state.settings, state.members.now
    reader, senders = NotificationReader(state.ledger, settings.public_url), senders_by_kind(now, settings.mail)
    delivery = NotificationDelivery(Receivers(state.database, now), reader, senders)
    task = asyncio.create_task(delivery.run_forever(settings.news_every_s, AbandonedRunDetector(state.ledger, now)))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def _adopting_submissions(state: State, every_s: float = ADOPT_EVERY_S) -> AsyncIterator[None]:
    """While the block runs, queue submissions that were stored but could not be queued: the database was away."""

    async def adopt_forever() -> None:
        while True:
            await asyncio.sleep(every_s)
            with suppress(LedgerError):  # still away
                await asyncio.to_thread(state.executor.adopt, ADOPT_AFTER)

    task = asyncio.create_task(adopt_forever())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _add_monitoring(app: FastAPI, state: State) -> None:
    """Add metrics and a request log; `mlcd ui` has neither."""
    app.state.metrics = None
    if state.settings.mode == "service":
        try:
            from mlcd.service.web.monitoring.metrics import Metrics
        except ImportError:
            raise MissingExtra("the metrics of a service", "service") from None
        metrics = app.state.metrics = Metrics()
        state.feed.listeners.append(metrics.on_entry)
        app.add_middleware(RequestLog, routes=Routes(route_templates()), on_request=metrics.on_request)


def route_templates() -> list[str]:
    """The paths of all routes, with the names of their parameters."""
    paths = [API + route.path for part in PARTS for route in part.router.routes if isinstance(route, Route)]
    return [*paths, f"{API}/openapi.json", *(each.path for each in monitoring.router.routes if isinstance(each, Route))]


async def _mlcd_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, MlcdError)
    refused = refusal(error)
    note_refusal(request.scope, str(refused))
    return refused.response()


async def _malformed_request(request: Request, error: Exception) -> Response:
    """Report only the first mistake, in one line, without the value that was sent."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    refused = Refusal(400, f"{where}: {first['msg']}"[:LONGEST_LINE])
    note_refusal(request.scope, str(refused))
    return refused.response()


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers) if error.headers else {}
    if error.status_code == 405:  # the framework lists those of one route; a path may have several
        headers["Allow"] = ", ".join(_methods(request.app, request.url.path))
    return Refusal(error.status_code, STATUS_MEANINGS.get(error.status_code, str(error.detail)), headers).response()


def _methods(app: FastAPI, path: str) -> list[str]:
    """The methods of a path."""
    matches = (methods for each, methods in app.openapi()["paths"].items() if compile_path(each)[0].match(path))
    return sorted({method.upper() for methods in matches for method in methods})


async def _disk_full(request: Request, error: Exception) -> Response:
    """A full or read-only disk: 503 with the reason, which is no secret."""
    if not isinstance(error, OSError) or error.errno not in DISK_ERRORS:
        raise error
    _LOG.error("%s %r: %s", request.method, request.url.path, error)
    return Refusal(503, f"the service cannot write to its disk ({error.strerror}); nothing was stored").response()


async def _internal_error(request: Request, error: Exception) -> Response:
    _LOG.error("%s %r: %r", request.method, request.url.path, error)  # the server logs the stack trace
    return Refusal(500, "an internal error of the service; see its log").response()
