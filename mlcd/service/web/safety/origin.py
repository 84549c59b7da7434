"""Where a request comes from: the name it calls us by, and the site that sent it.

A page of another site can make a browser send requests to a service on loopback. It cannot set a header of its own
without asking us first, and nobody is told yes: so what changes state must carry `X-MLCD`. And a name that somebody
else's DNS points at 127.0.0.1 is no name of ours.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import Request

from mlcd.service.web.failures import Refusal
from mlcd.service.web.settings import Settings

HEADER = "x-mlcd"
COOKIE = "mlcd_session"
READING = ("GET", "HEAD", "OPTIONS")


def check_host(request: Request, settings: Settings) -> None:
    """Refuse a name that is not ours: all but loopback, and what the service was told to be called."""
    host = _host(request.headers.get("host", ""))
    if host is None:
        raise Refusal(400, "the Host header is missing or malformed")
    ours = {name.lower() for name in (urlsplit(settings.public_url or "").hostname, *settings.hosts) if name}
    if _is_loopback(host) or host in ours or (settings.mode == "service" and not ours):
        return
    raise Refusal(403, f"this service is not called '{host[:80]}'; use {', '.join(sorted(ours)) or 'localhost'}")


def check_origin(request: Request, settings: Settings) -> None:
    """Refuse what another site's page sends, or may have sent."""
    if request.method in READING:
        return
    origin = request.headers.get("origin")
    if origin is not None and not _is_ours(origin, request, settings):
        raise Refusal(403, "the request comes from a page of another site")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refusal(403, "the request comes from a page of another site")
    if _needs_header(request, settings) and request.headers.get(HEADER) != "1":
        raise Refusal(403, "the header `X-MLCD: 1` is missing; it tells us that no page of another site sent this")


def _needs_header(request: Request, settings: Settings) -> bool:
    """A browser sends cookies by itself, and to a ui mode's port anything; a token it does not."""
    if settings.mode == "ui":
        return True
    signs_in = request.url.path.endswith("/session")
    return "authorization" not in request.headers and (COOKIE in request.cookies or signs_in)


def _is_ours(origin: str, request: Request, settings: Settings) -> bool:
    """By the name that the request itself calls us; where members come by https, a page that came by http is not."""
    try:
        told, public = urlsplit(origin), urlsplit(settings.public_url or "")
    except ValueError:
        return False
    if told.netloc and told.netloc.lower() == public.netloc.lower():
        return told.scheme == public.scheme
    return told.scheme in ("http", "https") and told.netloc.lower() == request.headers.get("host", "").lower()


def _host(written: str) -> str | None:
    """The name of 'name:port'; None for what is none."""
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
