"""The request log: a line for each request, refused ones included; also measures durations for the metrics."""

import logging
import re
import secrets
import time
from collections.abc import Callable, Sequence

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mlcd.service.team.members import without_secrets
from mlcd.service.web.identity import address_of

LOG = logging.getLogger("mlcd.service.requests")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
PROBED = ("/healthz", "/readyz", "/metrics")  # requested every few seconds: logged only if something is wrong
LONGEST_PATH = 200
ID = "X-Request-ID"
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
OTHER, PAGE = "(other)", "(page)"
NOT_REFUSED = (404, 405)  # logged as ordinary answers, not as refusals
OnRequest = Callable[[str, str, int, float], None]


class Routes:
    """The templates of all routes: `/api/v1/runs/{run}` for `/api/v1/runs/resnet-1`."""

    def __init__(self, templates: Sequence[str]) -> None:
        self._patterns = [(compile_path(each)[0], each) for each in templates]

    def template(self, path: str) -> str:
        """The template of a path; one name for all pages, and one for all unknown API paths."""
        found = next((template for pattern, template in self._patterns if pattern.match(path)), None)
        return found or (OTHER if path.startswith("/api/") else PAGE)


class RequestLog:
    """The outermost ASGI middleware: it also logs what the gate refuses, and internal errors."""

    def __init__(self, app: ASGIApp, routes: Routes, on_request: OnRequest) -> None:
        self.app, self._routes, self._on_request = app, routes, on_request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request, began = Request(scope), time.perf_counter()
        number = _number(request)
        scope.setdefault("state", {})

        async def send_with_number(message: Message) -> None:
            if message["type"] == "http.response.start":  # a stream of events ends hours later, or never
                self._written(request, number, message["status"], time.perf_counter() - began)
                MutableHeaders(scope=message)[ID] = number
            await send(message)

        try:
            await self.app(scope, receive, send_with_number)
        except Exception:
            self._written(request, number, 500, time.perf_counter() - began)
            raise

    def _written(self, request: Request, number: str, status: int, seconds: float) -> None:
        route = self._routes.template(request.scope["path"])
        method = request.method if request.method in METHODS else OTHER
        self._on_request(method, route, status, seconds)
        level = logging.ERROR if status >= 500 else logging.WARNING if _is_refusal(status) else logging.INFO
        if route in PROBED and level == logging.INFO:
            return
        scope_state = request.scope["state"]
        member = getattr(scope_state.get("member"), "name", None)
        about = {
            "request": number,
            "method": method,
            "route": route,
            "path": without_secrets(request.scope["path"])[:LONGEST_PATH],
            "status": status,
            "duration_ms": round(seconds * 1_000, 1),
            "member": member,
            "token": getattr(scope_state.get("member"), "token", None) or None,  # the token's name
            "address": address_of(request),
        }
        if why := scope_state.get("refused"):
            about["because"] = without_secrets(why)
        words = f"{method} {route} {status} of {member or address_of(request) or 'nobody'}"
        LOG.log(level, "%s%s", words, f": {about['because']}" if why else "", extra={"about": about})


def note_refusal(scope: Scope, line: str) -> None:
    """Record why a request is refused, for the request log."""
    scope.setdefault("state", {})["refused"] = line


def _is_refusal(status: int) -> bool:
    return 400 <= status < 500 and status not in NOT_REFUSED


def _number(request: Request) -> str:
    """The request id from a proxy, or a new one."""
    given = request.headers.get(ID, "")
    return given if _ID.fullmatch(given) else secrets.token_hex(8)
