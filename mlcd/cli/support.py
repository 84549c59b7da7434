"""What works on this machine, told beforehand and honestly."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from importlib import metadata, util

from mlcd.catalog import CLOUDS, load_rows
from mlcd.clouds.local.isolation import what_nodes_lack
from mlcd.clouds.ray.cluster import resources
from mlcd.clouds.skypilot.accounts import accounts, clouds_at_hand
from mlcd.core.errors import MlcdError, UnknownName
from mlcd.core.home import home, open_ledger
from mlcd.core.units import counted
from mlcd.core.version import VERSION
from mlcd.planners.functions.storages.local import available
from mlcd.planners.functions.workload import STORAGES

CORE = (
    "numpy",
    "scipy",
    "scikit-learn",
    "pydantic",
    "pyyaml",
    "click",
    "rich",
    "sqlalchemy",
    "alembic",
    "fastapi",
    "uvicorn",
)
EXTRAS = {
    "aws": ("boto3", "boto3", "fresh AWS prices: mlcd catalog refresh aws"),
    "serve": ("onnxruntime", "onnxruntime", "ONNX models: mlcd serve, mlcd operators, uploads to mlcd ui"),
    "service": ("procrastinate", "procrastinate", "a team on PostgreSQL: mlcd service, mlcd worker"),
    "ray": ("ray", "ray", "jobs on a Ray cluster"),
    "skypilot": ("skypilot", "sky", "jobs on any cloud"),
    "lithops": ("lithops", "lithops", "jobs on functions"),
}
"""By extra: the package, its module, and what it is for."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that works or does not; `needed` if MLCD cannot do without it."""

    what: str
    ok: bool
    found: str
    to_do: str = ""
    needed: bool = True


def checks(backend: str | None = None) -> list[Check]:
    """Everything worth knowing before a first run; or what one backend needs, of those that need something."""
    if backend is None:
        return [_python(), _core(), _state(), _catalog(), *_backends(), *map(_extra, EXTRAS)]
    if backend not in ABOUT:
        raise UnknownName("backend to check", backend, ABOUT)
    return ABOUT[backend]()


def _python() -> Check:
    ok = sys.version_info >= (3, 11)
    return Check("python", ok, sys.version.split()[0], "" if ok else "MLCD needs Python 3.11 or newer")


def _core() -> Check:
    versions = [f"{name} {metadata.version(name)}" for name in CORE]
    return Check("mlcd", True, f"{VERSION}, with {', '.join(versions)}")


def _state() -> Check:
    try:
        with closing(open_ledger()) as ledger:
            return Check("ledger", True, f"{ledger.database.name}, {counted(len(ledger.runs()), 'run')}")
    except MlcdError as error:
        return Check("ledger", False, str(error))


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
        Check("backend local", True, what_nodes_lack() or "real nodes on this machine, each with limits of its own"),
    ]


def _extra(name: str) -> Check:
    package, module, purpose = EXTRAS[name]
    ok = util.find_spec(module) is not None
    version = f"{package} {metadata.version(package)}" if ok else "not installed"
    return Check(f"extra {name}", ok, version, "" if ok else f"for {purpose}: pip install 'mlcd[{name}]'", needed=False)


def _ray_and_cluster() -> list[Check]:
    """The package, and the cluster, which is asked."""
    package = replace(_extra("ray"), needed=True)
    if not package.ok:
        return [package]
    try:
        marked = resources()
    except MlcdError as error:
        return [package, Check("cluster", False, "not reached", str(error))]
    told = f"its nodes' own resources: {', '.join(marked)}" if marked else "its nodes have no resources of their own"
    to_do = "" if marked else "mark its nodes with their type: ray start --resources '{\"small\": 1}'"
    return [package, Check("cluster", bool(marked), told, to_do)]


def _skypilot_and_accounts() -> list[Check]:
    """The package, and each cloud's credentials as files and variables show them: nobody is asked over a network."""
    found, at_hand = [replace(_extra("skypilot"), needed=True)], clouds_at_hand()
    for account in accounts():
        if account.found or account.cloud not in at_hand:
            told = f"credentials in {account.found}" if account.found else "no credentials found"
        else:
            told = "left to SkyPilot's API server, which has credentials of its own"
        ok = account.cloud in at_hand
        found.append(Check(f"cloud {account.cloud}", ok, told, "" if ok else account.to_do, needed=False))
    last = "now let SkyPilot try them, over the network: sky check" if at_hand else "get the credentials of one cloud"
    told = ", ".join(at_hand) or "none"
    return [*found, Check("clouds to rent from", bool(at_hand), told, last, needed=True)]


def _functions_and_storages() -> list[Check]:
    """The package, and each storage that this machine can start a server of."""
    found = [replace(_extra("lithops"), needed=True)]
    for name in STORAGES:
        why = available(name)
        told = "its server can be started here" if why is None else "no server of it here"
        found.append(Check(f"storage {name}", why is None, told, why or "", needed=False))
    return found


ABOUT: dict[str, Callable[[], list[Check]]] = {
    "ray": _ray_and_cluster,
    "skypilot": _skypilot_and_accounts,
    "functions": _functions_and_storages,
}
"""Backends that need more than MLCD to be installed, and how that is checked."""
