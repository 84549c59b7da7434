"""Cookies of ours: scripts cannot read them, and no other site can have them sent."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

from mlcd.service.web.state import State


def give(answer: Response, name: str, value: str, lasts_s: int, request: Request, state: State) -> None:
    """Have the browser keep a cookie."""
    answer.set_cookie(name, value, lasts_s, **_flags(request, state))


def take_back(answer: Response, name: str, request: Request, state: State) -> None:
    """Have the browser forget a cookie."""
    answer.delete_cookie(name, path="/", **_flags(request, state))


def _flags(request: Request, state: State) -> dict[str, Any]:
    is_https = request.url.scheme == "https" or (state.settings.public_url or "").startswith("https://")
    return {"secure": is_https, "httponly": True, "samesite": "strict"}
