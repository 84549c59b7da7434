"""Security headers of every response: no foreign scripts, no frames, no guessed content types."""

from __future__ import annotations

from collections.abc import Mapping

from mlcd.reports.html import policy

PAGES = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
DATA = "default-src 'none'; frame-ancestors 'none'"
SANDBOX = "frame-ancestors 'self'; sandbox allow-scripts"
"""Beside the report's own policy: its one script runs without an origin, and so without the member's session."""
YEAR_S = 31_536_000

ALWAYS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def headers_of(path: str, *, https: bool) -> dict[str, str]:
    """The headers of a response to this path."""
    headers = dict(ALWAYS)
    if not path.startswith("/api/"):
        headers["Content-Security-Policy"] = PAGES
    elif path.endswith("/report"):
        headers["Content-Security-Policy"] = f"{policy()}; {SANDBOX}"
    else:
        headers["Content-Security-Policy"] = DATA
        headers["Cache-Control"] = "private, no-cache"
    if https:
        headers["Strict-Transport-Security"] = f"max-age={YEAR_S}"
    return headers
