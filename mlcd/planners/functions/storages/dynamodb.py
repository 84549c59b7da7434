"""DynamoDB: dynamodb://table at AWS, or http://host:port/table. One item for each key, its bytes in one attribute.

An item has at most 400 KB, names and values together. A model that is larger cannot be exchanged here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from mlcd.core.clock import Clock
from mlcd.core.errors import UserError
from mlcd.planners.functions.storages.boto import client, fate, is_loopback
from mlcd.planners.functions.storages.storage import PATIENCE_S, Fate, Patient, some

KEY, VALUE = "key", "value"
LARGEST_ITEM = 400 * 1_024
READY_S = 0.02
AT_ONCE = 25
"""Items that one request may delete."""


class DynamoStorage(Patient):
    """A table whose partition key is the string `key`. On this machine it is made if it is not there."""

    def __init__(self, url: str, clock: Clock | None = None, patience_s: float = PATIENCE_S) -> None:
        super().__init__("dynamodb", url, clock, patience_s)
        parts = urlsplit(url)
        self._table = (parts.netloc if parts.scheme == "dynamodb" else parts.path.strip("/")) or ""
        if not self._table or "/" in self._table:
            raise UserError(f"dynamodb: '{url}' names no table: write dynamodb://TABLE or http://HOST:PORT/TABLE")
        self._client: Any = client("dynamodb", parts, patience_s)
        if is_loopback(parts):
            self._make()

    def put(self, key: str, value: bytes) -> None:
        """Keep this under that key; more than an item holds is a mistake of whoever chose DynamoDB."""
        size = len(KEY) + len(key.encode()) + len(VALUE) + len(value)
        if size > LARGEST_ITEM:
            raise UserError(
                f"dynamodb: an object of {size / 1_024:,.0f} KB does not fit into an item of "
                f"{LARGEST_ITEM / 1_024:.0f} KB: choose another storage for this model"
            )
        item = {KEY: {"S": key}, VALUE: {"B": value}}
        self.ask(partial(self._client.put_item, TableName=self._table, Item=item))

    def get(self, key: str) -> bytes | None:
        """What is under that key, as it was put last; None if nothing is."""
        where = {"TableName": self._table, "Key": {KEY: {"S": key}}, "ConsistentRead": True}
        found = self.ask(partial(self._client.get_item, **where)).get("Item")
        return bytes(found[VALUE]["B"]) if found else None

    def delete(self, keys: Sequence[str]) -> None:
        """Forget these."""
        left = [{"DeleteRequest": {"Key": {KEY: {"S": key}}}} for key in dict.fromkeys(keys)]
        for first in range(0, len(left), AT_ONCE):
            self.ask(partial(self._delete, left[first : first + AT_ONCE]))

    def _delete(self, these: list[dict[str, Any]]) -> None:
        told = self._client.batch_write_item(RequestItems={self._table: these})
        these[:] = told.get("UnprocessedItems", {}).get(self._table, [])
        if these:
            raise OSError(f"{len(these)} items are not deleted yet")

    def clear(self, prefix: str) -> None:
        """Forget every item whose key begins so. Reads the keys of the whole table."""
        where: dict[str, Any] = {
            "TableName": self._table,
            "ProjectionExpression": "#k",
            "FilterExpression": "begins_with(#k, :prefix)",
            "ExpressionAttributeNames": {"#k": KEY},
            "ExpressionAttributeValues": {":prefix": {"S": some(prefix)}},
        }
        while True:
            told = self.ask(partial(self._client.scan, **where))
            self.delete([each[KEY]["S"] for each in told["Items"]])
            if "LastEvaluatedKey" not in told:
                return
            where["ExclusiveStartKey"] = told["LastEvaluatedKey"]

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def fate(self, error: Exception) -> Fate:
        """What an error of boto3 means."""
        return fate(error)

    def _make(self) -> None:
        """Make the table, unless it is there, and wait until it can be used."""
        shape = {
            "AttributeDefinitions": [{"AttributeName": KEY, "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": KEY, "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        }

        def state() -> str:
            try:
                return str(self._client.describe_table(TableName=self._table)["Table"]["TableStatus"])
            except self._client.exceptions.ResourceNotFoundException:
                with contextlib.suppress(self._client.exceptions.ResourceInUseException):  # another one was first
                    self._client.create_table(TableName=self._table, **shape)
                return "CREATING"

        began_s = self.clock.elapsed_s()
        while self.ask(state) != "ACTIVE":
            if self.clock.elapsed_s() - began_s > self.patience_s:
                raise self.gone(f"has not made the table {self._table} in {self.patience_s:g} s")
            self.clock.wait(READY_S)
