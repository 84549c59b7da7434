"""The storages through which functions exchange data, by name and address, and averaging.

s3            s3://bucket             http://host:port/bucket
dynamodb      dynamodb://table        http://host:port/table
elasticache   redis://host:port/db    rediss:// over TLS
vm-ps         tcp://host:port
"""

from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from mlcd.core.errors import UnknownName, UserError
from mlcd.planners.functions.storages.exchange import Exchange, ExchangeFailed
from mlcd.planners.functions.storages.storage import RETRY_S, Averaging, Storage, StorageGone, Vector
from mlcd.planners.functions.workload import STORAGES, StorageKind

__all__ = ["Averaging", "Exchange", "ExchangeFailed", "Storage", "StorageGone", "Vector", "connect"]

_CLIENTS = {
    "s3": ("aws:S3Storage", ("s3", "http", "https"), "s3://BUCKET or http://HOST:PORT/BUCKET"),
    "dynamodb": ("aws:DynamoStorage", ("dynamodb", "http", "https"), "dynamodb://TABLE or http://HOST:PORT/TABLE"),
    "elasticache": ("redis_:RedisStorage", ("redis", "rediss"), "redis://HOST:PORT/DB"),
    "vm-ps": ("vm_ps:ParameterServerStorage", ("tcp",), "tcp://HOST:PORT"),
}
"""For each storage its client, and the schemes and the form of its address."""


def connect(name: str, url: str, *, retry_s: float = RETRY_S, most_requests: int | None = None) -> Storage:
    """The storage of that name at that address; requests that get no answer are retried for `retry_s`."""
    if name not in STORAGES:
        raise UnknownName("storage", name, STORAGES)
    client, schemes, form = _CLIENTS[name]
    try:
        parts = urlsplit(url)
        ok = parts.scheme in schemes and bool(parts.hostname) and (name != StorageKind.VM_PS or bool(parts.port))
    except ValueError:  # the port is not a number
        ok = False
    if not ok:
        raise UserError(f"{name}: '{url}' is not a valid address: write {form}")
    module, _, class_name = client.partition(":")
    storage: Any = getattr(import_module(f"{__name__}.{module}"), class_name)(url, retry_s)
    storage.most_requests = most_requests
    return storage  # type: ignore[no-any-return]
