"""169.254.169.254, an address of the bridge: who asks is known by its address.

SkyPilot's skylet ends its own cluster as the instance's role, whatever credentials were copied to the machine.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from moto.ec2.models.instances import Instance

from mlcd_box.cloud.ec2 import Ec2, all_instances

ADDRESS = "169.254.169.254"
ROLE = "skypilot-v1"


def serve_metadata(ec2: Ec2) -> ThreadingHTTPServer:
    """Version 2 of the service; tokens are given to everybody."""

    class Metadata(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self._answer("token")

        def do_GET(self) -> None:
            address = self.client_address[0]
            here = (each for each in all_instances() if each.state in ("pending", "running"))
            instance = next((each for each in here if each.private_ip == address), None)
            known = {} if instance is None else _about(instance, ec2.notices.get(instance.id))
            text = known.get(self.path.removeprefix("/latest/").rstrip("/"))
            if text is None:
                self.send_error(404)
            else:
                self._answer(text)

        def _answer(self, text: str) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            """Nothing: each machine asks many times a minute."""

    return ThreadingHTTPServer((ADDRESS, 80), Metadata)


def _about(instance: Instance, taken_back_at: float | None) -> dict[str, str]:
    zone = str(instance.placement.zone)
    known = {
        "meta-data/instance-id": instance.id,
        "meta-data/instance-type": instance.instance_type,
        "meta-data/instance-life-cycle": instance.lifecycle or "on-demand",
        "meta-data/local-ipv4": str(instance.private_ip),
        "meta-data/placement/availability-zone": zone,
        "meta-data/placement/region": zone[:-1],
        "meta-data/iam/security-credentials": ROLE,
        f"meta-data/iam/security-credentials/{ROLE}": json.dumps(_credentials()),
        "dynamic/instance-identity/document": json.dumps({"region": zone[:-1], "instanceId": instance.id}),
    }
    if taken_back_at is not None:
        at = datetime.fromtimestamp(taken_back_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        known["meta-data/spot/instance-action"] = json.dumps({"action": "terminate", "time": at})
        known["meta-data/spot/termination-time"] = at
    return known


def _credentials() -> dict[str, str]:
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 21_600))
    return {
        "Code": "Success",
        "Type": "AWS-HMAC",
        "AccessKeyId": "ASIABOXBOXBOXBOXBOX1",
        "SecretAccessKey": "box",
        "Token": "box",
        "LastUpdated": "2020-01-01T00:00:00Z",
        "Expiration": until,
    }
