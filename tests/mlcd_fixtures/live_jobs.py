"""Jobs of a few seconds in real processes of this machine, their node types, and the state of their runs."""

from __future__ import annotations

from pathlib import Path

from mlcd.core.home import open_ledger
from mlcd.core.ledger import Account

ONE_NODE = """
probe: 4s
probe_extra: 1s
startup: 20s
nodes: 1..1
types: {a: {cpus: 0.5, memory: 2GB, link: 100Mbit, usd_per_hour: $1}}
"""
"""A file of node types for `--on local`: half a core, for jobs that are looked at while they run."""
SAVING = """
import os, time
import mlcd_tracker
folder = mlcd_tracker.checkpoint_dir()
kept = os.path.join(folder, "done") if folder else None
done = int(open(kept).read()) if kept and os.path.exists(kept) else 0
nodes = int(os.environ["WORLD_SIZE"])
while done < TOTAL:
    time.sleep(0.02)
    done += 10 * nodes
    mlcd_tracker.step(10 * nodes)
    if kept and os.environ["RANK"] == "0" and done % 200 < 10 * nodes:
        with open(kept + ".new", "w") as file:
            file.write(str(done))
        os.replace(kept + ".new", kept)
        mlcd_tracker.saved()
if os.environ["RANK"] == "0":
    open("result", "a").write(f"{done}\\n")
"""
"""The same on any number of nodes, TOTAL samples in all: it saves its work, goes on from there, leaves a result."""
TWO_TYPES = """
probe: 6s
probe_extra: 1s
startup: 20s
nodes: 1..2
types:
  a: {cpus: 0.3, memory: 2GB, link: 100Mbit, usd_per_hour: $1}
  b: {cpus: 0.3, memory: 2GB, link: 100Mbit, usd_per_hour: $3}
"""
"""Two node types of this machine, for jobs that take seconds."""


def last_account(home: Path) -> Account:
    """Where the newest run of a ledger stands."""
    ledger = open_ledger(home)
    try:
        return ledger.account("last")
    finally:
        ledger.close()


SAVES_WHEN_ENDED = """
import signal, sys, time, mlcd_tracker
def save(*_):
    mlcd_tracker.saved()
    sys.exit()
signal.signal(signal.SIGTERM, save)
while True:
    time.sleep(0.02)
    mlcd_tracker.step(10)
"""
"""A script that saves its work when it is asked to end, and never ends by itself."""
