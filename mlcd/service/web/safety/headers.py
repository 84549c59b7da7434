"""What every answer tells a browser: run nothing that is not ours, frame nothing, guess no types."""

from __future__ import annotations

from collections.abc import Mapping

from mlcd.reports.html import policy

PAGES = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
DATA = "default-src 'none'; frame-ancestors 'none'"
IN_A_BOX = "frame-ancestors 'self'; sandbox allow-scripts"
"""Beside the report's own policy: its one script runs as if it came from nowhere, without the member's session."""
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
        told["Content-Security-Policy"] = f"{policy()}; {IN_A_BOX}"
    else:
        told["Content-Security-Policy"] = DATA
        told["Cache-Control"] = "private, no-cache"
    if https:
        told["Strict-Transport-Security"] = f"max-age={YEAR_S}"
    return told
