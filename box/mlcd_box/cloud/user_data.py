"""Parses a machine's user data for its first boot: the part of cloud-init that SkyPilot uses."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True)
class FirstBoot:
    """What to do at the first boot. `files`: content by path. `script`: bash code, run as root."""

    user: str
    keys: tuple[str, ...]
    files: Mapping[str, str]
    script: str


def read_user_data(text: str) -> FirstBoot:
    """Parse `#cloud-config`: users, write_files, bootcmd and runcmd."""
    document = yaml.safe_load(text) if text.startswith("#cloud-config") else {}
    config: dict[str, Any] = document if isinstance(document, dict) else {}
    users = [user for user in config.get("users") or [] if isinstance(user, dict)]
    user = users[0] if users else {}
    commands = [*(config.get("bootcmd") or []), *(config.get("runcmd") or [])]
    return FirstBoot(
        user=str(user.get("name", "ubuntu")),
        keys=tuple(str(key).strip() for key in user.get("ssh_authorized_keys") or []),
        files={file["path"]: file.get("content", "") for file in config.get("write_files") or []},
        script="\n".join(shlex.join(map(str, each)) if isinstance(each, list) else str(each) for each in commands)
        + "\n",
    )
