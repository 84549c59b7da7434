"""The OpenAPI document: what FastAPI makes of the routes, and what a code generator needs beside that."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from mlcd.service.web.safety.credentials import OPEN
from mlcd.service.web.safety.origin import COOKIE

SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A member's token, mlcd_...; `mlcd ui` has one person and needs none.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "The cookie that POST /session gives a browser. What changes something also needs X-MLCD: 1.",
    },
}
_UNSENT = ("HTTPValidationError", "ValidationError")
"""The framework's own complaint about a malformed request: here that is a 400, as every route says."""


def describe(app: FastAPI) -> dict[str, Any]:
    """The app's document, from now on also what it answers at `openapi.json`."""
    document = app.openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            _leave_out_what_is_never_sent(operation["responses"])
            if (method.upper(), path) in OPEN:
                operation["security"] = []
    schemas = document["components"]["schemas"]
    for name in _UNSENT:
        schemas.pop(name, None)
    for schema in schemas.values():
        for each in schema.get("properties", {}).values():
            each.pop("title", None)  # 'Spent Usd' says no more than the property's name
    document["components"]["securitySchemes"] = SCHEMES
    document["security"] = [{name: []} for name in SCHEMES]
    return document


def _leave_out_what_is_never_sent(responses: dict[str, Any]) -> None:
    schema = responses.get("422", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if schema.get("$ref", "").endswith(_UNSENT[0]):
        del responses["422"]
