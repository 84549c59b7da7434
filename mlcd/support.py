"""What works on this machine, told beforehand and honestly."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import dataclass
from importlib import metadata, util

from mlcd.assemble import home, open_ledger
from mlcd.catalog import CLOUDS, load_rows
from mlcd.errors import MlcdError
from mlcd.version import VERSION

CORE = ("numpy", "scipy", "scikit-learn", "pydantic", "pyyaml", "click", "rich")
EXTRAS = {"aws": ("boto3", "fresh AWS prices: mlcd catalog refresh aws")}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that works or does not; `needed` if MLCD cannot do without it."""

    what: str
    ok: bool
    found: str
    to_do: str = ""
    needed: bool = True


def checks() -> list[Check]:
    """Everything worth knowing before a first run."""
    return [_python(), _core(), _state(), _catalog(), *_backends(), *_extras()]


def _python() -> Check:
    ok = sys.version_info >= (3, 11)
    return Check("python", ok, sys.version.split()[0], "" if ok else "MLCD needs Python 3.11 or newer")


def _core() -> Check:
    versions = [f"{name} {metadata.version(name)}" for name in CORE]
    return Check("mlcd", True, f"{VERSION}, with {', '.join(versions)}")


def _state() -> Check:
    try:
        with closing(open_ledger()) as ledger:
            count = len(ledger.runs())
    except MlcdError as error:
        return Check("ledger", False, str(error))
    return Check("ledger", True, f"{home() / 'ledger.db'}, {count} runs")


def _catalog() -> Check:
    try:
        rows = [row for cloud in CLOUDS for row in load_rows(cloud, directory=home() / "catalog")]
    except MlcdError as error:
        return Check("catalog", False, str(error))
    newest = max(row.price_date for row in rows)
    return Check("catalog", True, f"{len(rows)} offers of {', '.join(CLOUDS)}, newest prices of {newest}")


def _backends() -> list[Check]:
    return [
        Check("backend simulated", True, "a made-up cloud over the catalog; the default"),
        Check("backend recorded:DIR", True, "replays a folder with recording.yaml and points.csv"),
    ]


def _extras() -> list[Check]:
    found = []
    for extra, (module, purpose) in EXTRAS.items():
        ok = util.find_spec(module) is not None
        version = f"{module} {metadata.version(module)}" if ok else "not installed"
        to_do = "" if ok else f"for {purpose}: pip install 'mlcd[{extra}]'"
        found.append(Check(f"extra {extra}", ok, version, to_do, needed=False))
    return found
