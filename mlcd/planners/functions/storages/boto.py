"""Shared by S3 and DynamoDB: a boto3 client, its credentials, and which of its errors are transient.

boto3 finds the credentials. A server on this machine needs none: it gets dummy ones, and no proxy is used.
"""

from __future__ import annotations

import functools
import threading
from typing import Any
from urllib.parse import SplitResult

from mlcd.core.errors import MissingExtra
from mlcd.planners.functions.storages.storage import ErrorKind

LOOPBACK = ("127.0.0.1", "localhost", "::1")
READ_TIMEOUT_S = 30.0
TRANSIENT_CODES = (
    "InternalError",
    "InternalServerError",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestTimeout",
    "ServiceUnavailable",
    "SlowDown",
    "ThrottlingException",
)

_CREATING = threading.Lock()
"""boto3 clients are thread-safe, but creating them is not."""
LOST_CODES = ("NoSuchBucket", "ResourceNotFoundException")


def is_loopback(url: SplitResult) -> bool:
    """Whether the address is on this machine."""
    return url.hostname in LOOPBACK


def client(service: str, url: SplitResult, retry_s: float) -> Any:
    """A client of that service: at the address for http and https, otherwise at AWS."""
    try:
        from botocore.config import Config
    except ImportError:
        raise MissingExtra(f"a storage on {service}", "lithops") from None
    options: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    if url.scheme in ("http", "https"):
        options["endpoint_url"] = f"{url.scheme}://{url.netloc}"
        settings["s3"] = {"addressing_style": "path"}
    if is_loopback(url):
        options |= {"aws_access_key_id": "loopback", "aws_secret_access_key": "loopback", "region_name": "us-east-1"}
        settings["proxies"] = {"http": "", "https": ""}
    config = Config(
        connect_timeout=min(READ_TIMEOUT_S, max(retry_s, 1.0)),
        read_timeout=READ_TIMEOUT_S,
        retries={"total_max_attempts": 1},  # we retry ourselves, to count the requests
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        **settings,
    )
    with _CREATING:
        return _session().client(service, config=config, **options)


@functools.cache
def _session() -> Any:
    """One session for the process: it caches AWS's service descriptions, which are slow to load."""
    from boto3.session import Session

    return Session()


def code(error: BaseException) -> str:
    """The error code of AWS; empty for other errors."""
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def error_kind(error: Exception) -> ErrorKind:
    """Connection errors, timeouts, throttling and server errors are transient; a missing bucket or table is lost."""
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError
    from botocore.exceptions import ConnectionError as Unconnected

    if isinstance(error, (Unconnected, HTTPClientError, IncompleteReadError, OSError)):
        return ErrorKind.TRANSIENT
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code(error) in LOST_CODES:
            return ErrorKind.LOST
        return ErrorKind.TRANSIENT if code(error) in TRANSIENT_CODES or status >= 500 else ErrorKind.REFUSED
    return ErrorKind.REFUSED if isinstance(error, BotoCoreError) else ErrorKind.OTHER
