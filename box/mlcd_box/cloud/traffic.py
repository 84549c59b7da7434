"""Requests on their way to moto: throttled or refused by rule. Counted: those to S3, and bytes that leave a region."""

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


def on_the_way(moto: Application, faults: Faults, events: EventLog) -> Application:
    """moto, behind what may go wrong on the way."""

    def answer(environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        signed = _SERVICE.search(environ.get("HTTP_AUTHORIZATION", ""))
        service = signed[1] if signed else ""
        if faults.rules("api-down"):
            return _refused(respond, DOWN)
        if service == "ec2" and any(random.random() < rule.share for rule in faults.rules("throttle")):
            return _refused(respond, SLOW_DOWN)
        answered = moto(environ, respond)
        if service == "s3" and (what := _billed_as(environ)):
            events.write("asked", what=what)
        return _counted(answered, environ, events) if service == "s3" else answered

    return answer


def _billed_as(environ: dict[str, Any]) -> str:
    """The price class of a request to S3: to list costs as much as to put, to delete nothing."""
    method = environ["REQUEST_METHOD"]
    names_key = "/" in environ["PATH_INFO"].strip("/")
    if method == "DELETE" or (method == "POST" and "delete" in environ["QUERY_STRING"]):
        return ""
    return "get" if method in ("GET", "HEAD") and (names_key or method == "HEAD") else "put"


def _refused(respond: Callable[..., Any], body: bytes) -> Iterable[bytes]:
    respond("503 Service Unavailable", [("Content-Type", "text/xml"), ("Content-Length", str(len(body)))])
    return [body]


def _counted(answered: Iterable[bytes], environ: dict[str, Any], events: EventLog) -> Iterable[bytes]:
    """The same answer; where it leaves its region, its bytes are noted."""
    whole = b"".join(answered)
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
    """Of the machine or function that asks; None: somebody outside of the cloud."""
    for region, of_functions in FUNCTIONS.items():
        if address == of_functions:
            return region
    found = next((each for each in all_instances() if each.private_ip == address), None)
    return None if found is None else str(found.placement.zone)[:-1]
