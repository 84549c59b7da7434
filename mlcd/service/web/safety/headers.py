"""Security headers of every response: no foreign scripts, no frames, no guessed content types."""

from __future__ import annotations

from collections.abc import Mapping

PAGES = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
DATA = "default-src 'none'; frame-ancestors 'none'"
REPORT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox"
"""A report needs no script, so a script that was injected through a job's name would not run."""
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
        headers["Content-Security-Policy"] = REPORT
    else:
        headers["Content-Security-Policy"] = DATA
        headers["Cache-Control"] = "private, no-cache"
    if https:
        headers["Strict-Transport-Security"] = f"max-age={YEAR_S}"
    return headers
