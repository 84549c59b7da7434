"""/box/...: the test API of the cloud, which AWS does not have: its state, preempting machines, failing machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl

from moto.ec2.models.instances import Instance

from mlcd_box.cloud.ec2 import NOTICE_S, Ec2, all_instances, all_volumes, market_of
from mlcd_box.cloud.functions.service import Service


def box_api(ec2: Ec2, functions: dict[str, Service]) -> Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]:
    """GET /box/state; POST /box/interrupt and /box/lose with ?machine=ID or NAME, and &notice_s=."""

    def answer(environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        query = dict(parse_qsl(environ.get("QUERY_STRING", "")))
        instances = [each for each in all_instances() if _matches(each, query.get("machine", ""))]
        if environ["PATH_INFO"] == "/box/interrupt":
            for each in instances:
                ec2.interrupt(each, float(query.get("notice_s", NOTICE_S)))
        elif environ["PATH_INFO"] == "/box/lose":
            for each in instances:
                ec2.lose(each)
        body = json.dumps(
            {
                "machines": list(map(_machine, all_instances())),
                "volumes": list(map(_volume, all_volumes())),
                "functions": [each for service in functions.values() for each in service.functions],
                "calls": sum(service.pool.running + service.queued for service in functions.values()),
            }
        )
        respond("200 OK", [("Content-Type", "application/json")])
        return [body.encode()]

    return answer


def _matches(instance: Instance, machine: str) -> bool:
    """Whether a running instance has this id, or a name that begins so: SkyPilot appends a suffix to the cluster's."""
    return (
        instance.state == "running"
        and bool(machine)
        and (instance.id == machine or _name(instance).startswith(machine))
    )


def _machine(instance: Instance) -> dict[str, Any]:
    return {
        "id": instance.id,
        "name": _name(instance),
        "state": instance.state,
        "type": instance.instance_type,
        "zone": instance.placement.zone,
        "market": market_of(instance),
        "address": instance.private_ip,
        "tags": {tag["key"]: tag["value"] for tag in instance.get_tags()},
    }


def _volume(volume: Any) -> dict[str, Any]:
    machine = volume.attachment.instance.id if volume.attachment else None
    return {"id": volume.id, "gb": volume.size, "zone": volume.zone.name, "machine": machine}


def _name(instance: Instance) -> str:
    return next((str(tag["value"]) for tag in instance.get_tags() if tag["key"] == "Name"), "")
