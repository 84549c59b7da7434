"""A launch's label as a name that SkyPilot and every cloud take."""

from __future__ import annotations

import hashlib
import re
import secrets
from pathlib import Path

LONGEST = 22
"""Of what is kept of a label: with the rest that is within the 42 characters that Azure takes."""


def cluster_name(owner: str, label: str) -> str:
    """The name of a launch's cluster, of every label its own. Known before the cluster is."""
    plain = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")
    if label and plain == label and len(label) <= LONGEST:
        return f"mlcd-{owner}-{label}"
    # A plain name has no underscore, so the two kinds never meet.
    digest = hashlib.sha256(label.encode()).hexdigest()[:8]
    return f"mlcd-{owner}-{plain[:LONGEST]}_{digest}"


def owner_of(home: Path) -> str:
    """What tells this state folder from others: on a shared SkyPilot server, names are everybody's."""
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
