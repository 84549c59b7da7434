"""The pages: built files, read when the app starts and served from memory, so that no request reaches the disk.

Every path that is neither the API's nor a file gets index.html, whose router shows the page.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mlcd.service.web.answers import MEANING

INDEX = "index.html"
FOLDERS = ("api", "assets")
"""Under these, an unknown path is a 404."""
MISSING = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>MLCD</title>'
    "<p>The pages are not built: <code>npm ci &amp;&amp; npm run build</code> in pages/. The API is at /api/v1.</p>"
)


@dataclass(frozen=True)
class Built:
    """A file of the pages."""

    body: bytes
    media_type: str
    tag: str


def pages(built: Mapping[str, Built] | None = None) -> ASGIApp:
    """The app behind the API's routes; `built`: by default the files of this installation."""
    served = read(files("mlcd.service.web").joinpath("static")) if built is None else built

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await page(served, Request(scope))(scope, receive, send)

    return answer


def page(built: Mapping[str, Built], request: Request) -> Response:
    """A file, or index.html."""
    path = request.url.path.strip("/")
    file = built.get(path)
    if file is None and path.partition("/")[0] in FOLDERS:
        return JSONResponse({"error": MEANING[404]}, 404)
    if request.method not in ("GET", "HEAD"):
        return JSONResponse({"error": MEANING[405]}, 405, {"Allow": "GET, HEAD"})
    file = file or built.get(INDEX)
    if file is None:
        return HTMLResponse(MISSING)
    headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.media_type, headers=headers)


def read(folder: Traversable, before: str = "") -> dict[str, Built]:
    """All files of a folder by their relative path; none if the folder does not exist."""
    files_read: dict[str, Built] = {}
    if not folder.is_dir():
        return files_read
    for each in folder.iterdir():
        name = f"{before}{each.name}"
        if each.is_dir():
            files_read |= read(each, f"{name}/")
        else:
            body = each.read_bytes()
            kind = mimetypes.guess_type(each.name)[0] or "application/octet-stream"
            files_read[name] = Built(body, kind, f'"{hashlib.sha256(body).hexdigest()[:16]}"')
    return files_read
