"""Where functions meet: S3, DynamoDB, Redis and a parameter server, and how they average there."""

from mlcd.clouds.storages.connecting import connect
from mlcd.clouds.storages.exchange import Meeting, MeetingBroken
from mlcd.clouds.storages.storage import Averaging, Storage, StorageGone
from mlcd.clouds.storages.vectors import Vector

__all__ = ["Averaging", "Meeting", "MeetingBroken", "Storage", "StorageGone", "Vector", "connect"]
