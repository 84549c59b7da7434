"""DynamoDB: dynamodb://table at AWS, or http://host:port/table. One item for each key, its bytes in one attribute.

An item has at most 400 KB, names and values together, so a larger model cannot be exchanged here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from mlcd.core.clock import Clock
from mlcd.core.errors import UserError
from mlcd.planners.functions.storages.boto import client, error_kind, is_loopback
from mlcd.planners.functions.storages.storage import RETRY_S, ErrorKind, RetryingStorage, checked_prefix

KEY, VALUE = "key", "value"
LARGEST_ITEM = 400 * 1_024
READY_S = 0.02
AT_ONCE = 25
"""Most items that one request can delete."""


class DynamoStorage(RetryingStorage):
    """A table with the string `key` as partition key. On this machine it is created if it does not exist."""

    def __init__(self, url: str, clock: Clock | None = None, retry_s: float = RETRY_S) -> None:
        super().__init__("dynamodb", url, clock, retry_s)
        parts = urlsplit(url)
        self._table = (parts.netloc if parts.scheme == "dynamodb" else parts.path.strip("/")) or ""
        if not self._table or "/" in self._table:
            raise UserError(f"dynamodb: '{url}' names no table: write dynamodb://TABLE or http://HOST:PORT/TABLE")
        self._client: Any = client("dynamodb", parts, retry_s)
        if is_loopback(parts):
            self._create_table()

    def put(self, key: str, value: bytes) -> None:
        """Store a value; `UserError` if it is larger than an item."""
        size = len(KEY) + len(key.encode()) + len(VALUE) + len(value)
        if size > LARGEST_ITEM:
            raise UserError(
                f"dynamodb: an object of {size / 1_024:,.0f} KB does not fit into an item of "
                f"{LARGEST_ITEM / 1_024:.0f} KB: choose another storage for this model"
            )
        item = {KEY: {"S": key}, VALUE: {"B": value}}
        self.request(partial(self._client.put_item, TableName=self._table, Item=item))

    def get(self, key: str) -> bytes | None:
        """The newest value of a key; None if there is none."""
        where = {"TableName": self._table, "Key": {KEY: {"S": key}}, "ConsistentRead": True}
        item = self.request(partial(self._client.get_item, **where)).get("Item")
        return bytes(item[VALUE]["B"]) if item else None

    def delete(self, keys: Sequence[str]) -> None:
        """Delete these keys."""
        requests = [{"DeleteRequest": {"Key": {KEY: {"S": key}}}} for key in dict.fromkeys(keys)]
        for first in range(0, len(requests), AT_ONCE):
            self.request(partial(self._delete, requests[first : first + AT_ONCE]))

    def _delete(self, requests: list[dict[str, Any]]) -> None:
        reply = self._client.batch_write_item(RequestItems={self._table: requests})
        requests[:] = reply.get("UnprocessedItems", {}).get(self._table, [])
        if requests:
            raise OSError(f"{len(requests)} items are not deleted yet")

    def clear(self, prefix: str) -> None:
        """Delete all keys with this prefix. Scans the keys of the whole table."""
        where: dict[str, Any] = {
            "TableName": self._table,
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

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def error_kind(self, error: Exception) -> ErrorKind:
        """Classify an error of boto3."""
        return error_kind(error)

    def _create_table(self) -> None:
        """Create the table if it does not exist, and wait until it is active."""
        shape = {
            "AttributeDefinitions": [{"AttributeName": KEY, "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": KEY, "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        }

        def state() -> str:
            try:
                return str(self._client.describe_table(TableName=self._table)["Table"]["TableStatus"])
            except self._client.exceptions.ResourceNotFoundException:
                with contextlib.suppress(self._client.exceptions.ResourceInUseException):  # another process was faster
                    self._client.create_table(TableName=self._table, **shape)
                return "CREATING"

        began_s = self.clock.elapsed_s()
        while self.request(state) != "ACTIVE":
            if self.clock.elapsed_s() - began_s > self.retry_s:
                raise self.gone_error(f"has not made the table {self._table} in {self.retry_s:g} s")
            self.clock.wait(READY_S)
