"""The storages through which functions exchange data, S3, DynamoDB, Redis and a parameter server, and averaging."""

from mlcd.planners.functions.storages.connect import connect
from mlcd.planners.functions.storages.exchange import Meeting, MeetingBroken
from mlcd.planners.functions.storages.storage import Averaging, Storage, StorageGone
from mlcd.planners.functions.storages.vectors import Vector

__all__ = ["Averaging", "Meeting", "MeetingBroken", "Storage", "StorageGone", "Vector", "connect"]
