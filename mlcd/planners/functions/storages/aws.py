"""S3 and DynamoDB through boto3.

s3         s3://bucket at AWS, or http://host:port/bucket for any server that speaks S3; one object for each key
dynamodb   dynamodb://table at AWS, or http://host:port/table; one item for each key, its bytes in one attribute. An
           item has at most 400 KB, names and values together, so a larger model cannot be exchanged there

boto3 finds the credentials. A server on this machine needs none: it gets dummy ones, and no proxy is used.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import SplitResult, urlsplit

from mlcd.core.errors import MissingExtra, UserError
from mlcd.planners.functions.storages.storage import ErrorKind, RetryingStorage, StorageError, checked_prefix

LOOPBACK = ("127.0.0.1", "localhost", "::1")
READ_TIMEOUT_S = 30.0
TRANSIENT_CODES = (
    "InternalError", "InternalServerError", "ProvisionedThroughputExceededException", "RequestLimitExceeded",
    "RequestTimeout", "ServiceUnavailable", "SlowDown", "ThrottlingException",
)  # fmt: skip
LOST_CODES = ("NoSuchBucket", "ResourceNotFoundException")
S3_AT_ONCE, DYNAMODB_AT_ONCE = 1_000, 25
"""Most objects that one request can list or delete, and most items that one can delete."""
KEY, VALUE = "key", "value"
LARGEST_ITEM = 400 * 1_024
READY_S = 0.02
_CREATING = threading.Lock()
"""boto3 clients are thread-safe, but creating them is not."""


class _AwsStorage(RetryingStorage):
    """What is stored in one bucket or table. On this machine it is created if it does not exist."""

    service: str
    container: str

    def __init__(self, url: str, retry_s: float) -> None:
        super().__init__(self.service, url, retry_s)
        parts = urlsplit(url)
        self._name = (parts.netloc if parts.scheme == self.service else parts.path.strip("/")) or ""
        if not self._name or "/" in self._name:
            upper = self.container.upper()
            forms = f"{self.service}://{upper} or http://HOST:PORT/{upper}"
            raise UserError(f"{self.service}: '{url}' names no {self.container}: write {forms}")
        self._client: Any = _client(self.service, parts, retry_s)
        if parts.hostname in LOOPBACK:
            self._create()

    def _create(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def error_kind(self, error: Exception) -> ErrorKind:
        """Classify an error of boto3."""
        return aws_error_kind(error)


class S3Storage(_AwsStorage):
    """A bucket."""

    service, container = "s3", "bucket"

    def put(self, key: str, value: bytes) -> None:
        """Store a value."""
        self.request(partial(self._client.put_object, Bucket=self._name, Key=key, Body=value))
        self.puts += 1

    def get(self, key: str) -> bytes | None:
        """The value of a key; None if there is none."""

        def read() -> bytes | None:
            try:
                body: bytes = self._client.get_object(Bucket=self._name, Key=key)["Body"].read()
            except self._client.exceptions.NoSuchKey:
                return None
            return body

        return self.request(read)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete these keys."""
        for first in range(0, len(keys), S3_AT_ONCE):
            objects = {"Objects": [{"Key": key} for key in keys[first : first + S3_AT_ONCE]], "Quiet": True}
            reply = self.request(partial(self._client.delete_objects, Bucket=self._name, Delete=objects))
            for error in reply.get("Errors", ()):
                raise StorageError(f"s3 at {self.url} does not delete {error.get('Key')}: {error.get('Message')}")

    def clear(self, prefix: str) -> None:
        """Delete all keys with this prefix."""
        where = {"Bucket": self._name, "Prefix": checked_prefix(prefix), "MaxKeys": S3_AT_ONCE}
        while page := self.request(partial(self._client.list_objects_v2, **where)).get("Contents", ()):
            self.delete([each["Key"] for each in page])
            self.puts += 1  # to list costs as much

    def _create(self) -> None:
        """Create the bucket if it does not exist."""

        def once() -> None:
            try:
                self._client.head_bucket(Bucket=self._name)
            except self._client.exceptions.ClientError as error:
                if error.response["Error"]["Code"] not in ("404", "NoSuchBucket"):
                    raise
                with contextlib.suppress(
                    self._client.exceptions.BucketAlreadyOwnedByYou, self._client.exceptions.BucketAlreadyExists
                ):  # another function was first
                    self._client.create_bucket(Bucket=self._name)

        self.request(once)


class DynamoStorage(_AwsStorage):
    """A table with the string `key` as partition key."""

    service, container = "dynamodb", "table"

    def put(self, key: str, value: bytes) -> None:
        """Store a value; `UserError` if it is larger than an item."""
        size = len(KEY) + len(key.encode()) + len(VALUE) + len(value)
        if size > LARGEST_ITEM:
            raise UserError(
                f"dynamodb: an object of {size / 1_024:,.0f} KB does not fit into an item of "
                f"{LARGEST_ITEM / 1_024:.0f} KB: choose another storage for this model"
            )
        item = {KEY: {"S": key}, VALUE: {"B": value}}
        self.request(partial(self._client.put_item, TableName=self._name, Item=item))

    def get(self, key: str) -> bytes | None:
        """The newest value of a key; None if there is none."""
        where = {"TableName": self._name, "Key": {KEY: {"S": key}}, "ConsistentRead": True}
        item = self.request(partial(self._client.get_item, **where)).get("Item")
        return bytes(item[VALUE]["B"]) if item else None

    def delete(self, keys: Sequence[str]) -> None:
        """Delete these keys."""
        requests = [{"DeleteRequest": {"Key": {KEY: {"S": key}}}} for key in dict.fromkeys(keys)]
        for first in range(0, len(requests), DYNAMODB_AT_ONCE):
            self.request(partial(self._delete, requests[first : first + DYNAMODB_AT_ONCE]))

    def _delete(self, requests: list[dict[str, Any]]) -> None:
        reply = self._client.batch_write_item(RequestItems={self._name: requests})
        requests[:] = reply.get("UnprocessedItems", {}).get(self._name, [])
        if requests:
            raise OSError(f"{len(requests)} items are not deleted yet")

    def clear(self, prefix: str) -> None:
        """Delete all keys with this prefix. Scans the keys of the whole table."""
        where: dict[str, Any] = {
            "TableName": self._name,
            "ProjectionExpression": "#k",
            "FilterExpression": "begins_with(#k, :prefix)",
            "ExpressionAttributeNames": {"#k": KEY},
            "ExpressionAttributeValues": {":prefix": {"S": checked_prefix(prefix)}},
        }
        while True:
            page = self.request(partial(self._client.scan, **where))
            self.delete([each[KEY]["S"] for each in page["Items"]])
            if "LastEvaluatedKey" not in page:
                return
            where["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _create(self) -> None:
        """Create the table if it does not exist, and wait until it is active."""
        shape = {
            "AttributeDefinitions": [{"AttributeName": KEY, "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": KEY, "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        }

        def state() -> str:
            try:
                return str(self._client.describe_table(TableName=self._name)["Table"]["TableStatus"])
            except self._client.exceptions.ResourceNotFoundException:
                with contextlib.suppress(self._client.exceptions.ResourceInUseException):  # another process was faster
                    self._client.create_table(TableName=self._name, **shape)
                return "CREATING"

        began_s = self.clock.elapsed_s()
        while self.request(state) != "ACTIVE":
            if self.clock.elapsed_s() - began_s > self.retry_s:
                raise self.gone_error(f"has not made the table {self._name} in {self.retry_s:g} s")
            self.clock.wait(READY_S)


def _client(service: str, url: SplitResult, retry_s: float) -> Any:
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
    if url.hostname in LOOPBACK:
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


def aws_error_kind(error: Exception) -> ErrorKind:
    """Connection errors, timeouts, throttling and server errors are transient; a missing bucket or table is lost."""
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError
    from botocore.exceptions import ConnectionError as Unconnected

    if isinstance(error, (Unconnected, HTTPClientError, IncompleteReadError, OSError)):
        return ErrorKind.TRANSIENT
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code = error.response.get("Error", {}).get("Code", "")
        if code in LOST_CODES:
            return ErrorKind.LOST
        return ErrorKind.TRANSIENT if code in TRANSIENT_CODES or status >= 500 else ErrorKind.REFUSED
    return ErrorKind.REFUSED if isinstance(error, BotoCoreError) else ErrorKind.OTHER
