"""mlcd check: what is installed, which backends work here, what is missing and how to get it; or a job file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from importlib import metadata, util
from pathlib import Path

import click
from rich.markup import escape

from mlcd.catalog import clouds_in, load_rows
from mlcd.cli.check_job import check_job, is_job_file
from mlcd.cli.options import consoles, output, print_json
from mlcd.cli.server import chosen_server
from mlcd.clouds.local.gpus import usable_gpus
from mlcd.clouds.local.isolation import isolation_warning
from mlcd.clouds.ray.cluster import resources
from mlcd.clouds.skypilot.credentials import find_credentials, usable_clouds
from mlcd.core.errors import MlcdError, UnknownName
from mlcd.core.home import home, open_ledger
from mlcd.core.units import counted, format_usd
from mlcd.core.version import VERSION
from mlcd.planners.functions.storages.local import available
from mlcd.planners.functions.workload import STORAGES
from mlcd.service.remote.server import Server

CORE = "numpy scipy scikit-learn pydantic pyyaml click rich sqlalchemy alembic fastapi uvicorn"
EXTRAS = {
    "aws": ("boto3", "boto3", "current AWS prices: mlcd catalog refresh aws"),
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


@click.command()
@click.argument("what", required=False, metavar="[WHAT]")
@output
def check(what: str | None, output: str) -> int:
    """Check this installation, or a job file.

    Without WHAT: what works on this machine, and what is missing. WHAT is a job file, to list all its mistakes; or a
    backend (ray, skypilot, functions), to see what it needs.

    \b
    mlcd check
    mlcd check job.yaml
    """
    if what is not None and what not in ABOUT and is_job_file(what):
        return check_job(Path(what), output)
    results = checks(what)
    if (server := chosen_server()) is not None:
        results.append(_server(server))
    if output == "json":
        print_json({"checks": [{"what": c.what, "ok": c.ok, "found": c.found, "to_do": c.to_do} for c in results]})
    else:
        console, _ = consoles()
        for c in results:
            mark = "[green]✔[/green]" if c.ok else "[yellow]-[/yellow]"
            console.print(f"{mark} [bold]{c.what}[/bold]  {escape(c.found)}")
            if c.to_do:
                console.print(f"    {c.to_do}", style="dim", markup=False)
    return 0 if all(c.ok for c in results if c.needed) else 1


def checks(backend: str | None = None) -> list[Check]:
    """Everything worth knowing before a first run; or what one backend needs, of those that need something."""
    if backend is None:
        python = Check("python", True, sys.version.split()[0])
        return [python, _core(), _state(), _catalog(), *_backends(), *map(_extra, EXTRAS)]
    if backend not in ABOUT:
        raise UnknownName("backend to check", backend, ABOUT)
    return ABOUT[backend]()


def _core() -> Check:
    versions = [f"{name} {metadata.version(name)}" for name in CORE.split()]
    return Check("mlcd", True, f"{VERSION}, with {', '.join(versions)}")


def _state() -> Check:
    try:
        with closing(open_ledger()) as ledger:
            return Check("ledger", True, f"{ledger.database.name}, {counted(len(ledger.runs()), 'run')}")
    except MlcdError as error:
        return Check("ledger", False, str(error))


def _catalog() -> Check:
    directory = home() / "catalog"
    clouds = clouds_in(directory)
    try:
        rows = [row for cloud in clouds for row in load_rows(cloud, directory=directory)]
    except MlcdError as error:
        return Check("catalog", False, str(error))
    newest = max(row.price_date for row in rows)
    return Check("catalog", True, f"{len(rows)} offers of {', '.join(clouds)}, newest prices of {newest}")


def _backends() -> list[Check]:
    local = isolation_warning() or "real processes on this machine, as nodes with limits of their own"
    gpus = usable_gpus().kinds
    return [
        Check("backend simulated", True, "a simulated cloud with the catalog's prices; the default"),
        Check("backend recorded:DIR", True, "replays measurements from a folder with recording.yaml and points.csv"),
        Check("backend local", True, f"{local}; GPUs: {gpus}" if gpus else local),
    ]


def _extra(name: str) -> Check:
    package, module, purpose = EXTRAS[name]
    ok = util.find_spec(module) is not None
    version = f"{package} {metadata.version(package)}" if ok else "not installed"
    return Check(
        f"extra {name}", ok, version, "" if ok else f"needed for {purpose}: pip install 'mlcd[{name}]'", needed=False
    )


def _ray_and_cluster() -> list[Check]:
    """The package, and whether the cluster answers."""
    package = replace(_extra("ray"), needed=True)
    if not package.ok:
        return [package]
    try:
        marked = resources()
    except MlcdError as error:
        return [package, Check("cluster", False, "not reached", str(error))]
    if marked:
        return [package, Check("cluster", True, f"custom resources of its nodes: {', '.join(marked)}")]
    to_do = "give each node its type as a custom resource: ray start --resources '{\"small\": 1}'"
    return [package, Check("cluster", False, "its nodes have no custom resources", to_do)]


def _skypilot_and_accounts() -> list[Check]:
    """The package, and each cloud's credentials as found in files and variables; nothing is sent over the network."""
    clouds = clouds_in(home() / "catalog")
    results, usable = [replace(_extra("skypilot"), needed=True)], usable_clouds(clouds)
    for each in find_credentials(clouds):
        ok = each.cloud in usable
        if each.location:
            found = f"credentials in {each.location}"
        else:
            found = "SkyPilot's API server uses its own credentials" if ok else "no credentials found"
        results.append(Check(f"cloud {each.cloud}", ok, found, "" if ok else each.how_to_get, needed=False))
    last = "let SkyPilot test them over the network: sky check" if usable else "set up the credentials of one cloud"
    return [*results, Check("clouds to rent from", bool(usable), ", ".join(usable) or "none", last)]


def _functions_and_storages() -> list[Check]:
    """The package, and each storage that this machine can start a server of."""
    results = [replace(_extra("lithops"), needed=True)]
    for name in STORAGES:
        why = available(name)
        server = "its server can be started here" if why is None else "its server is not installed here"
        results.append(Check(f"storage {name}", why is None, server, why or "", needed=False))
    return results


ABOUT: dict[str, Callable[[], list[Check]]] = {
    "ray": _ray_and_cluster,
    "skypilot": _skypilot_and_accounts,
    "functions": _functions_and_storages,
}
"""Backends that need more than MLCD, and the function that checks each."""


def _server(server: Server) -> Check:
    """Whether the chosen server answers, and which member the token belongs to."""
    try:
        with server.reading():
            me = server.get("/me")
            who = f"you are {me['name']}, {me['role']}" if me["name"] is not None else "for one user"
            left = f", {format_usd(me['left_usd'])} left" if me["left_usd"] is not None else ""
            recordings = [f"recorded:{name}" for name in me["recordings"]]
            places = ", ".join([*(place for place in me["places"] if place != "recorded"), *recordings])
            return Check("server", True, f"{server.url}: MLCD {me['version']}, {who}{left}; jobs run on {places}")
    except MlcdError as error:
        what, _, to_do = str(error).partition("; ")
        return Check("server", False, what, to_do)
