"""Protection against requests from other sites: checks the Host header and the Origin.

A page of another site can make a browser send requests to a service on loopback. It cannot set a custom header without
a CORS preflight, which is never granted: so requests that change state must carry `X-MLCD`. And a foreign DNS name that
points to 127.0.0.1 (DNS rebinding) is not an accepted host.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import Request

from mlcd.service.web.failures import Refusal
from mlcd.service.web.settings import Settings

HEADER = "x-mlcd"
COOKIE = "mlcd_session"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


def check_host(request: Request, settings: Settings) -> None:
    """Refuse unknown hosts: all but loopback and the service's configured names."""
    host = _host(request.headers.get("host", ""))
    if host is None:
        raise Refusal(400, "the Host header is missing or malformed")
    ours = {name.lower() for name in (urlsplit(settings.public_url or "").hostname, *settings.hosts) if name}
    if _is_loopback(host) or host in ours or (settings.mode == "service" and not ours):
        return
    raise Refusal(403, f"this service is not called '{host[:80]}'; use {', '.join(sorted(ours)) or 'localhost'}")


def check_origin(request: Request, settings: Settings) -> None:
    """Refuse requests that a page of another site sent, or may have sent."""
    if request.method in SAFE_METHODS:
        return
    origin = request.headers.get("origin")
    if origin is not None and not _is_ours(origin, request, settings):
        raise Refusal(403, "the request comes from a page of another site")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refusal(403, "the request comes from a page of another site")
    if _needs_header(request, settings) and request.headers.get(HEADER) != "1":
        raise Refusal(403, "the header `X-MLCD: 1` is missing; it proves that no page of another site sent this")


def _needs_header(request: Request, settings: Settings) -> bool:
    """A browser sends cookies by itself, and needs none in ui mode; it never sends a token by itself."""
    if settings.mode == "ui":
        return True
    signs_in = request.url.path.endswith("/session")
    return "authorization" not in request.headers and (COOKIE in request.cookies or signs_in)


def _is_ours(origin: str, request: Request, settings: Settings) -> bool:
    """Whether the origin is the request's own host; with a public https URL, an http origin of it is refused."""
    try:
        sent, public = urlsplit(origin), urlsplit(settings.public_url or "")
    except ValueError:
        return False
    if sent.netloc and sent.netloc.lower() == public.netloc.lower():
        return sent.scheme == public.scheme
    return sent.scheme in ("http", "https") and sent.netloc.lower() == request.headers.get("host", "").lower()


def _host(written: str) -> str | None:
    """The name in 'name:port'; None if it is malformed."""
    try:
        parts = urlsplit(f"//{written}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == written and "@" not in written else None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
