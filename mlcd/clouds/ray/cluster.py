"""Connects to a Ray cluster, lists its resources, starts and stops the nodes of a launch.

A launch has a placement group, with one actor for each bundle. They are named after the launch, in the namespace
`mlcd`. They belong to this process, so Ray removes them when it ends in any way.
"""

import contextlib
import logging
import os
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import mlcd_tracker
from mlcd.clouds.ray import node as node_actor
from mlcd.core.errors import BackendError, MissingExtra, UserError

NAMESPACE = "mlcd"
CONNECT_TIMEOUT_S = 5.0
"""Timeout of a connection to the cluster's address."""
TEARDOWN_TIMEOUT_S = 15.0
"""Timeout of the cluster's confirmation that a launch is gone."""
HOW = "start one with `ray start --head`, or set its address: RAY_ADDRESS=host:6379"

_folder: Path | None = None
"""The job folder of this process's connection."""


def connect(folder: Path | None = None) -> Any:
    """Ray, connected to the cluster. `folder`: every node gets a copy of it and runs the job there."""
    global _folder
    try:
        import ray
    except ImportError:
        raise MissingExtra("the ray backend", "ray") from None
    if ray.is_initialized():
        if folder in (None, _folder):
            return ray
        ray.shutdown()
    # Not Ray's "auto": it also finds clusters of other containers, and may wait forever.
    address = os.environ.get("RAY_ADDRESS", "auto").replace("auto", "") or _last_started_address()
    if not address:
        raise UserError(f"no Ray cluster is running here: {HOW}")
    _check_connection(address)
    shipped: dict[str, Any] = {"py_modules": [str(Path(mlcd_tracker.__file__).parent)], "excludes": ["__pycache__/"]}
    if folder is not None:
        shipped["working_dir"] = str(folder)
    try:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        ray.init(address, namespace=NAMESPACE, runtime_env=shipped, **quiet)
    except ValueError as error:
        raise UserError(f"Ray at {address}: {_first_line(error)}; set RAY_ADDRESS to HOST:PORT") from error
    except Exception as error:  # of many types: a folder too large to ship, another Ray version ...
        raise BackendError(f"Ray at {address}: {_first_line(error)}") from error
    _folder = folder
    return ray


def _last_started_address() -> str:
    """The address of the cluster last started on this machine, from Ray's own file. It may not run any more."""
    note = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()) / "ray" / "ray_current_cluster"
    return note.read_text(encoding="utf-8").strip() if note.exists() else ""


def _check_connection(address: str) -> None:
    """Check the connection before Ray does: Ray tries for a minute and then ends the process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise UserError(f"no Ray cluster at {address} ({error.strerror or error}): {HOW}") from error


def count(bundle: Mapping[str, float]) -> int:
    """How many nodes of the cluster have these resources."""
    return sum(all(has.get(name, 0.0) >= wanted for name, wanted in bundle.items()) for has in _alive())


def resources() -> list[str]:
    """The custom resources of the cluster's nodes, with their CPUs."""
    ours = ("node:", "memory", "object_store_memory", "accelerator_type:", "CPU", "GPU")
    return sorted(
        {f"{name} ({has.get('CPU', 0):g} CPUs)" for has in _alive() for name in has if not name.startswith(ours)}
    )


def _alive() -> list[dict[str, float]]:
    """The resources of each node that is up."""
    return [node["Resources"] for node in connect().nodes() if node["Alive"]]


def bring_up(label: str, bundle: dict[str, float], count: int, wait_s: float) -> list[Any] | None:
    """Start an actor on each of `count` nodes; None if the cluster does not have that many free within `wait_s`."""
    ray = connect()
    from ray.util.placement_group import placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    with _ray_errors():
        group = placement_group([bundle] * count, strategy="STRICT_SPREAD", name=_group(label))
        if not group.wait(max(wait_s, 0.0)):
            return None
        marked = {name: amount for name, amount in bundle.items() if name not in ("CPU", "GPU")}
        ray.cloudpickle.register_pickle_by_value(node_actor)  # so that the nodes do not need MLCD
        actor = ray.remote(node_actor.Node)
        return [
            actor.options(
                name=f"{label}.{i}",
                num_cpus=bundle["CPU"],
                num_gpus=bundle.get("GPU", 0),
                resources=marked,
                scheduling_strategy=PlacementGroupSchedulingStrategy(group, i),
            ).remote()
            for i in range(count)
        ]


def tear_down(label: str, grace_s: float) -> bool:
    """Remove what is left of a launch and wait until it is gone; return whether there was anything. Idempotent."""
    ray = connect()
    with _ray_errors():
        names = [name for name in _named() if name.rpartition(".")[0] == label]
        nodes = []
        for name in names:
            with contextlib.suppress(ValueError):  # gone in the meantime
                nodes.append(ray.get_actor(name))
        ends = [node.end.remote(grace_s) for node in nodes]
        if ends:
            ray.wait(ends, num_returns=len(ends), timeout=grace_s + TEARDOWN_TIMEOUT_S)
        for node in nodes:
            ray.kill(node)
        had_group = _group(label) in _groups()
        if had_group:
            with contextlib.suppress(ValueError):
                ray.util.remove_placement_group(ray.util.get_placement_group(_group(label)))
        deadline_s = time.monotonic() + TEARDOWN_TIMEOUT_S
        while label in labels():
            if time.monotonic() > deadline_s:
                raise BackendError(f"launch {label} is still on the Ray cluster; try: mlcd clean")
            time.sleep(0.05)
    return bool(names) or had_group


def labels() -> set[str]:
    """The labels of launches that have anything left in the cluster."""
    return {name.rpartition(".")[0] for name in _named()} | {name.removeprefix(_group("")) for name in _groups()}


def _named() -> list[str]:
    actors = connect().util.list_named_actors(all_namespaces=True)
    return [each["name"] for each in actors if each["namespace"] == NAMESPACE]


def _groups() -> list[str]:
    groups = connect().util.placement_group_table().values()
    return [each["name"] for each in groups if each["name"].startswith(_group("")) and each["state"] != "REMOVED"]


def _group(label: str) -> str:
    return f"{NAMESPACE}.{label}"


@contextlib.contextmanager
def _ray_errors() -> Iterator[None]:
    """Turn Ray's errors into `BackendError` of one line."""
    from ray.exceptions import RayError

    try:
        yield
    except RayError as error:
        raise BackendError(f"Ray: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
