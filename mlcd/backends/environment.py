"""What a job's process finds in its environment of ours: everything but what opens MLCD's own doors.

Whoever reads a job's log reads what the job prints, and jobs of a service are their owners', not ours.
"""

from __future__ import annotations

import os

WITHHELD = ("MLCD_DATABASE_URL", "MLCD_TOKEN")
"""The database with its password, and a member's token. A job that needs one of its own says so in its `envs:`."""


def inherited() -> dict[str, str]:
    """The variables of this process that a job's process gets, too."""
    return {name: value for name, value in os.environ.items() if name not in WITHHELD}
