"""What every answer tells a browser: run nothing that is not ours, frame nothing, guess no types."""

from __future__ import annotations

from collections.abc import Mapping

PAGES = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
DATA = "default-src 'none'; frame-ancestors 'none'"
REPORT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox"
"""A report has no script and needs none: whatever a job's name smuggled in would not run."""
YEAR_S = 31_536_000

ALWAYS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def headers_of(path: str, *, https: bool) -> dict[str, str]:
    """For an answer to this path."""
    told = dict(ALWAYS)
    if not path.startswith("/api/"):
        told["Content-Security-Policy"] = PAGES
    elif path.endswith("/report"):
        told["Content-Security-Policy"] = REPORT
    else:
        told["Content-Security-Policy"] = DATA
        told["Cache-Control"] = "private, no-cache"
    if https:
        told["Strict-Transport-Security"] = f"max-age={YEAR_S}"
    return told
