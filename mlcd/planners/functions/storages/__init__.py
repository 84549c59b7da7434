"""Where functions meet: S3, DynamoDB, Redis and a parameter server, and how they average there."""

from mlcd.planners.functions.storages.connecting import connect
from mlcd.planners.functions.storages.exchange import Meeting, MeetingBroken
from mlcd.planners.functions.storages.storage import Averaging, Storage, StorageGone
from mlcd.planners.functions.storages.vectors import Vector

__all__ = ["Averaging", "Meeting", "MeetingBroken", "Storage", "StorageGone", "Vector", "connect"]
