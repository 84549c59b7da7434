"""The instance metadata service, 169.254.169.254: a machine is recognised by its address.

SkyPilot's skylet needs it: it ends its own cluster with the instance's role, not with copied credentials.
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
    """A server for version 2 of the service. Any client gets a token."""

    class Metadata(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self._answer("token")

        def do_GET(self) -> None:
            address = self.client_address[0]
            up = (each for each in all_instances() if each.state in ("pending", "running"))
            instance = next((each for each in up if each.private_ip == address), None)
            metadata = {} if instance is None else _metadata(instance, ec2.notices.get(instance.id))
            text = metadata.get(self.path.removeprefix("/latest/").rstrip("/"))
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
            """Log nothing: each machine sends many requests a minute."""

    return ThreadingHTTPServer((ADDRESS, 80), Metadata)


def _metadata(instance: Instance, preempted_at: float | None) -> dict[str, str]:
    zone = str(instance.placement.zone)
    metadata = {
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
    if preempted_at is not None:
        at = datetime.fromtimestamp(preempted_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata["meta-data/spot/instance-action"] = json.dumps({"action": "terminate", "time": at})
        metadata["meta-data/spot/termination-time"] = at
    return metadata


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
