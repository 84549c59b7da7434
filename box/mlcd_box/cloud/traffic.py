"""Intercepts requests to moto: refuses them by the fault rules; records S3 requests and bytes that leave a region."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from typing import Any

from moto.s3.models import s3_backends

from mlcd_box.cloud.__main__ import FUNCTIONS
from mlcd_box.cloud.ec2 import all_instances
from mlcd_box.cloud.faults import Faults
from mlcd_box.events import EventLog

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_SERVICE = re.compile(r"Credential=[^/]+/\d+/[^/]+/(\w+)/")
SLOW_DOWN = (
    b"<?xml version='1.0'?><Response><Errors><Error><Code>RequestLimitExceeded</Code>"
    b"<Message>Request limit exceeded.</Message></Error></Errors><RequestID>box</RequestID></Response>"
)
DOWN = SLOW_DOWN.replace(b"RequestLimitExceeded", b"ServiceUnavailable").replace(b"Request limit exceeded", b"Down")


def with_faults_and_metering(moto: Application, faults: Faults, events: EventLog) -> Application:
    """Wrap moto: some requests are refused by the fault rules, and S3 requests and traffic are recorded."""

    def answer(environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        signed = _SERVICE.search(environ.get("HTTP_AUTHORIZATION", ""))
        service = signed[1] if signed else ""
        if faults.rules("api-down"):
            return _refused(respond, DOWN)
        if service == "ec2" and any(random.random() < rule.share for rule in faults.rules("throttle")):
            return _refused(respond, SLOW_DOWN)
        response = moto(environ, respond)
        if service == "s3" and (what := _billed_as(environ)):
            events.write("asked", what=what)
        return _metered(response, environ, events) if service == "s3" else response

    return answer


def _billed_as(environ: dict[str, Any]) -> str:
    """The price class of an S3 request: listing costs as much as `put`; deleting is free ('')."""
    method = environ["REQUEST_METHOD"]
    names_key = "/" in environ["PATH_INFO"].strip("/")
    if method == "DELETE" or (method == "POST" and "delete" in environ["QUERY_STRING"]):
        return ""
    return "get" if method in ("GET", "HEAD") and (names_key or method == "HEAD") else "put"


def _refused(respond: Callable[..., Any], body: bytes) -> Iterable[bytes]:
    respond("503 Service Unavailable", [("Content-Type", "text/xml"), ("Content-Length", str(len(body)))])
    return [body]


def _metered(response: Iterable[bytes], environ: dict[str, Any], events: EventLog) -> Iterable[bytes]:
    """The same response; its bytes are recorded if it leaves its region."""
    whole = b"".join(response)
    bucket = environ["PATH_INFO"].lstrip("/").split("/")[0]
    home, reader = _region_of_bucket(bucket), _region_of_address(environ.get("REMOTE_ADDR", ""))
    if whole and home is not None and reader != home:
        events.write("sent", region=home, to=reader or "internet", bytes=len(whole))
    return [whole]


def _region_of_bucket(name: str) -> str | None:
    for account in s3_backends.values():
        for backend in account.values():
            if name in backend.buckets:
                return str(backend.buckets[name].region_name)
    return None


def _region_of_address(address: str) -> str | None:
    """The region of the machine or function with this address; None if it is outside of the cloud."""
    for region, functions_address in FUNCTIONS.items():
        if address == functions_address:
            return region
    instance = next((each for each in all_instances() if each.private_ip == address), None)
    return None if instance is None else str(instance.placement.zone)[:-1]
