"""Where functions meet: S3, DynamoDB, Redis and a parameter server, and how they average there."""

from mlcd.storages.connecting import connect
from mlcd.storages.exchange import Meeting, MeetingBroken
from mlcd.storages.storage import Averaging, Storage, StorageGone
from mlcd.storages.vectors import Vector

__all__ = ["Averaging", "Meeting", "MeetingBroken", "Storage", "StorageGone", "Vector", "connect"]
