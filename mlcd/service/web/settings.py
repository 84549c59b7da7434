"""What the one who starts the service has settled: who it is for, where jobs may run, and how much is too much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from mlcd.service.caps import CAPS

Mode = Literal["ui", "service"]
PLACES = ("simulated", "recorded", "local", "functions", "ray", "skypilot")
"""Kinds of `on`: what stands before the colon."""


@dataclass(frozen=True)
class Limits:
    """How much one may send, how often, and how many streams of events one may have open.

    `known_for_s`: how long a stream goes on before it is asked again whether its watcher is a member.
    """

    upload_mb: int = 200
    uploads_mb_each: int = 2_000
    body_kb: int = 256
    per_minute: int = 600
    submissions_per_minute: int = 60
    sign_ins_per_minute: int = 10
    streams_each: int = 100
    known_for_s: float = 20.0


@dataclass(frozen=True)
class Settings:
    """Mode 'ui': one person on this machine. Mode 'service': members with tokens.

    `recordings`: clouds to replay, by the name that `recorded:NAME` gives; a request never names a path. `hosts`: names
    besides loopback's that a request may be addressed to. `same_user`: on loopback, only processes of this user are
    answered where the system can tell. `count_simulated`: runs on simulated and recorded clouds count against budgets.
    `member_queued`: runs of one member that may wait.
    """

    mode: Mode
    home: Path
    places: tuple[str, ...] = PLACES
    recordings: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType({}))
    limits: Limits = field(default_factory=Limits)
    public_url: str | None = None
    hosts: tuple[str, ...] = ()
    same_user: bool = True
    count_simulated: bool = False
    member_queued: int = CAPS.queued
