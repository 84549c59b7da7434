"""Turns a launch's label into a cluster name that SkyPilot and every cloud accept."""

from __future__ import annotations

import hashlib
import re
import secrets
from pathlib import Path

LONGEST = 22
"""Characters kept of a label, so that the whole name has at most the 42 characters that Azure allows."""


def cluster_name(owner: str, label: str) -> str:
    """The name of a launch's cluster: unique for each label, and known before the cluster exists."""
    plain = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")
    if label and plain == label and len(label) <= LONGEST:
        return f"mlcd-{owner}-{label}"
    # A plain name has no underscore, so the two kinds of names never collide.
    digest = hashlib.sha256(label.encode()).hexdigest()[:8]
    return f"mlcd-{owner}-{plain[:LONGEST]}_{digest}"


def owner_of(home: Path) -> str:
    """The id of this state folder: on a shared SkyPilot server, all users share one set of cluster names."""
    path = home / "skypilot-owner"
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(secrets.token_hex(2))
        except FileExistsError:  # another process was faster
            pass
        return path.read_text(encoding="utf-8").strip()
