"""The settings of a service: its users, where jobs may run, and the limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from mlcd.service.caps import CAPS

Mode = Literal["ui", "service"]
PLACES = ("simulated", "recorded", "local", "functions", "ray", "skypilot")
"""Kinds of places: the part of `on` before the colon."""


@dataclass(frozen=True)
class Limits:
    """Limits of size, rate and open event streams of a member.

    `known_for_s`: how often a stream checks again that its receiver is still a member.
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

    `recordings`: clouds to replay, by the name in `recorded:NAME`; a request never names a path. `hosts`: accepted Host
    headers beside loopback. `same_user`: on loopback, answer only processes of this user, where the system knows that.
    `count_simulated`: runs on simulated and recorded clouds count against budgets. `member_queued`: most queued runs of
    one member.
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
