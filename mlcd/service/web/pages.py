"""Serves the built pages. They are read into memory when the app starts, so that no request reaches the disk.

Every path that is neither the API's nor a file gets index.html, whose router shows the page.
"""

import hashlib
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mlcd.service.web.errors import STATUS_MEANINGS

STATIC = Path(__file__).parent / "static"
FOLDERS = ("api", "assets", "healthz", "metrics", "readyz")  # under these, an unknown path is a 404, not a page
MISSING = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>MLCD</title>'
    "<p>The pages are not built: <code>npm ci &amp;&amp; npm run build</code> in pages/. The API is at /api/v1.</p>"
)


class Built(NamedTuple):
    """A file of the pages."""

    body: bytes
    media_type: str
    tag: str


def pages() -> ASGIApp:
    """The app behind the API's routes."""
    built = read(STATIC)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await page(built, Request(scope))(scope, receive, send)

    return answer


def page(built: Mapping[str, Built], request: Request) -> Response:
    """A file, or index.html."""
    path = request.url.path.strip("/")
    file = built.get(path)
    if file is None and path.partition("/")[0].lower() in FOLDERS:
        return JSONResponse({"error": STATUS_MEANINGS[404]}, 404)
    if request.method not in ("GET", "HEAD"):
        return JSONResponse({"error": STATUS_MEANINGS[405]}, 405, {"Allow": "GET, HEAD"})
    file = file or built.get("index.html")
    if file is None:
        return HTMLResponse(MISSING)
    headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.media_type, headers=headers)


def read(folder: Path) -> dict[str, Built]:
    """All files of a folder by their relative path; none if the folder does not exist."""
    files = {each.relative_to(folder).as_posix(): each for each in folder.rglob("*") if each.is_file()}
    return {name: _built(file.read_bytes(), name) for name, file in files.items()}


def _built(body: bytes, name: str) -> Built:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Built(body, kind, f'"{hashlib.sha256(body).hexdigest()[:16]}"')
