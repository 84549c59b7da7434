"""Lambda in each region of a box, with processes behind its functions."""

from __future__ import annotations

import time
from pathlib import Path

from mlcd_box.cloud.__main__ import FUNCTIONS, PORT
from mlcd_box.cloud.faults import Faults
from mlcd_box.cloud.functions.environment import Sandbox
from mlcd_box.cloud.functions.pool import Pool
from mlcd_box.cloud.functions.runtime import runtime
from mlcd_box.cloud.functions.service import Service
from mlcd_box.events import EventLog


def services(box: Path, events: EventLog, faults: Faults) -> dict[str, Service]:
    """Lambda by region."""
    python = runtime()
    return {
        region: Service(
            region,
            Sandbox(box.name, box / "functions" / "environments", python, f"http://{address}:{PORT}").start,
            Pool(faults.calls_at_once, time.time),
            events,
            faults.is_throttled,
        )
        for region, address in FUNCTIONS.items()
    }
