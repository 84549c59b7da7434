"""Machines of any cloud, rented through SkyPilot."""

from mlcd.clouds.skypilot.accounts import Account, accounts, clouds_at_hand
from mlcd.clouds.skypilot.backend import STARTUP_LIMIT_S, SkyPilot
from mlcd.clouds.skypilot.client import Client, ClusterState, End, EndKind, Following
from mlcd.clouds.skypilot.sdk import Sdk
from mlcd.clouds.skypilot.task import checkpoint_folder

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
