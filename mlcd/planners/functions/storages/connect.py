"""Connects to a storage by its name and address.

s3            s3://bucket             http://host:port/bucket
dynamodb      dynamodb://table        http://host:port/table
elasticache   redis://host:port/db    rediss:// over TLS
vm-ps         tcp://host:port
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from mlcd.core.clock import Clock
from mlcd.core.errors import UnknownName, UserError
from mlcd.planners.functions.storages.storage import RETRY_S, Storage
from mlcd.planners.functions.workload import STORAGES, StorageKind

FORMS = {
    StorageKind.S3: (("s3", "http", "https"), "s3://BUCKET or http://HOST:PORT/BUCKET"),
    StorageKind.DYNAMODB: (("dynamodb", "http", "https"), "dynamodb://TABLE or http://HOST:PORT/TABLE"),
    StorageKind.ELASTICACHE: (("redis", "rediss"), "redis://HOST:PORT/DB"),
    StorageKind.VM_PS: (("tcp",), "tcp://HOST:PORT"),
}


def connect(name: str, url: str, *, clock: Clock | None = None, retry_s: float = RETRY_S) -> Storage:
    """The storage of that name at that address; requests that get no answer are retried for `retry_s`."""
    parts = check(name, url)
    match StorageKind(name):
        case StorageKind.S3:
            from mlcd.planners.functions.storages.s3 import S3Storage

            return S3Storage(url, clock, retry_s)
        case StorageKind.DYNAMODB:
            from mlcd.planners.functions.storages.dynamodb import DynamoStorage

            return DynamoStorage(url, clock, retry_s)
        case StorageKind.ELASTICACHE:
            from mlcd.planners.functions.storages.redis_ import RedisStorage

            return RedisStorage(url, clock, retry_s)
        case StorageKind.VM_PS:
            from mlcd.planners.functions.storages.vm_ps import ParameterServerStorage

            return ParameterServerStorage(parts.hostname or "", parts.port or 0, url, clock, retry_s)


def check(name: str, url: str) -> SplitResult:
    """The parts of the address; `UserError` if it has not the storage's form."""
    if name not in STORAGES:
        raise UnknownName("storage", name, STORAGES)
    schemes, form = FORMS[StorageKind(name)]
    try:
        parts = urlsplit(url)
        ok = parts.scheme in schemes and bool(parts.hostname) and (name != StorageKind.VM_PS or bool(parts.port))
    except ValueError:  # the port is not a number
        ok = False
    if not ok:
        raise UserError(f"{name}: '{url}' is not a valid address: write {form}")
    return parts
