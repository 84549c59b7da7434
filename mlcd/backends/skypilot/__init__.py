"""Machines of any cloud, rented through SkyPilot."""

from mlcd.backends.skypilot.accounts import Account, accounts, clouds_at_hand
from mlcd.backends.skypilot.backend import STARTUP_LIMIT_S, SkyPilot
from mlcd.backends.skypilot.client import Client, ClusterState, End, EndKind, Following
from mlcd.backends.skypilot.sdk import Sdk
from mlcd.backends.skypilot.task import checkpoint_folder

__all__ = [
    "STARTUP_LIMIT_S",
    "Account",
    "Client",
    "ClusterState",
    "End",
    "EndKind",
    "Following",
    "Sdk",
    "SkyPilot",
    "accounts",
    "checkpoint_folder",
    "clouds_at_hand",
]
