"""The pages: files that were built once, read when the app starts, and served from memory: no request names a path.

Every path that is not the API's and no file's is one of the pages, which find their way by themselves.
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
"""Under these, what is not there is not a page."""
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
    """What answers where no route of the API does; `built`: the files of this installation."""
    shown = read(files("mlcd.service.web").joinpath("static")) if built is None else built

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await page(shown, Request(scope))(scope, receive, send)

    return answer


def page(built: Mapping[str, Built], request: Request) -> Response:
    """A file, or the page that all others are made by."""
    path = request.url.path.strip("/")
    found = built.get(path)
    if found is None and path.partition("/")[0] in FOLDERS:
        return JSONResponse({"error": MEANING[404]}, 404)
    if request.method not in ("GET", "HEAD"):
        return JSONResponse({"error": MEANING[405]}, 405, {"Allow": "GET, HEAD"})
    found = found or built.get(INDEX)
    if found is None:
        return HTMLResponse(MISSING)
    headers = {"ETag": found.tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.body, media_type=found.media_type, headers=headers)


def read(folder: Traversable, before: str = "") -> dict[str, Built]:
    """Every file of a folder by its path in it; none where there is no such folder."""
    found: dict[str, Built] = {}
    if not folder.is_dir():
        return found
    for each in folder.iterdir():
        name = f"{before}{each.name}"
        if each.is_dir():
            found |= read(each, f"{name}/")
        else:
            body = each.read_bytes()
            kind = mimetypes.guess_type(each.name)[0] or "application/octet-stream"
            found[name] = Built(body, kind, f'"{hashlib.sha256(body).hexdigest()[:16]}"')
    return found
