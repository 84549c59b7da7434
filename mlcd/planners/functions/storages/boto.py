"""What S3 and DynamoDB share: a boto3 client, its credentials, and which of its errors pass.

Credentials are found as boto3 does. A server on this machine needs none: it is told a name that means nothing, and no
proxy is asked for the way to it.
"""

from __future__ import annotations

import functools
import threading
from typing import Any
from urllib.parse import SplitResult

from mlcd.core.errors import MissingExtra
from mlcd.planners.functions.storages.storage import Fate

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SILENT_S = 30.0
PASSING = (
    "InternalError",
    "InternalServerError",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestTimeout",
    "ServiceUnavailable",
    "SlowDown",
    "ThrottlingException",
)

_ONE_AT_A_TIME = threading.Lock()
"""Clients may be used by many threads, but not made by many."""
LOST = ("NoSuchBucket", "ResourceNotFoundException")


def is_loopback(url: SplitResult) -> bool:
    """Whether that address is on this machine."""
    return url.hostname in LOOPBACK


def client(service: str, url: SplitResult, patience_s: float) -> Any:
    """A client of that service: at that address for http and https, at AWS itself else."""
    try:
        from botocore.config import Config
    except ImportError:
        raise MissingExtra(f"a storage on {service}", "lithops") from None
    told: dict[str, Any] = {}
    how: dict[str, Any] = {}
    if url.scheme in ("http", "https"):
        told["endpoint_url"] = f"{url.scheme}://{url.netloc}"
        how["s3"] = {"addressing_style": "path"}
    if is_loopback(url):
        told |= {"aws_access_key_id": "loopback", "aws_secret_access_key": "loopback", "region_name": "us-east-1"}
        how["proxies"] = {"http": "", "https": ""}
    config = Config(
        connect_timeout=min(SILENT_S, max(patience_s, 1.0)),
        read_timeout=SILENT_S,
        retries={"total_max_attempts": 1},  # asking again is ours, so that it is counted
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        **how,
    )
    with _ONE_AT_A_TIME:
        return _session().client(service, config=config, **told)


@functools.cache
def _session() -> Any:
    """One for the process: it remembers what it has read of AWS, which takes longer than anything that follows."""
    from boto3.session import Session

    return Session()


def code(error: BaseException) -> str:
    """What AWS calls the error; nothing where it is none of AWS."""
    told = getattr(error, "response", None)
    return str(told.get("Error", {}).get("Code", "")) if isinstance(told, dict) else ""


def fate(error: Exception) -> Fate:
    """No connection, no answer, too much at once, or a mistake of the server passes; a bucket or table is lost."""
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError
    from botocore.exceptions import ConnectionError as Unconnected

    if isinstance(error, (Unconnected, HTTPClientError, IncompleteReadError, OSError)):
        return Fate.PASSES
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code(error) in LOST:
            return Fate.LOST
        return Fate.PASSES if code(error) in PASSING or status >= 500 else Fate.REFUSED
    return Fate.REFUSED if isinstance(error, BotoCoreError) else Fate.NOT_OURS
