"""Sets and deletes cookies that scripts cannot read (HttpOnly) and other sites cannot use (SameSite=Strict)."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

from mlcd.service.web.state import State


def set_cookie(answer: Response, name: str, value: str, lasts_s: int, request: Request, state: State) -> None:
    """Set a cookie in the browser."""
    answer.set_cookie(name, value, lasts_s, **_flags(request, state))


def delete_cookie(answer: Response, name: str, request: Request, state: State) -> None:
    """Delete a cookie in the browser."""
    answer.delete_cookie(name, path="/", **_flags(request, state))


def _flags(request: Request, state: State) -> dict[str, Any]:
    is_https = request.url.scheme == "https" or (state.settings.public_url or "").startswith("https://")
    return {"secure": is_https, "httponly": True, "samesite": "strict"}
