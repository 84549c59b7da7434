"""Run on a node of AWS: from then on a shutdown from within terminates the machine.

Otherwise AWS only stops it, and its disk is billed until somebody deletes it. Needs the role that SkyPilot gives to
its machines, as autostop does, and boto3, which is in SkyPilot's own Python on the node. Shipped with the launch.
"""

import os
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

METADATA = "http://169.254.169.254/latest"
"""Where a machine of AWS learns about itself."""
TIMEOUT_S = 5.0
ROLE_ALONE = {"AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_CONFIG_FILE": "/dev/null"}
"""The user's own credentials, which may be on the node too, may not be allowed to do this."""


def request(path: str, headers: Mapping[str, str], method: str = "GET") -> str:
    """Ask the machine about itself."""
    asked = urllib.request.Request(METADATA + path, headers=dict(headers), method=method)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(asked, timeout=TIMEOUT_S) as answer:
        return str(answer.read().decode())


def terminate_on_shutdown(request: Callable[..., str], ec2: Callable[[str], Any]) -> None:
    """Set that a shutdown from within terminates this machine. `ec2`: the client of a region."""
    token = request("/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}, "PUT")
    headers = {"X-aws-ec2-metadata-token": token}
    machine, region = (request(f"/meta-data/{path}", headers) for path in ("instance-id", "placement/region"))
    behaviour = {"Attribute": "instanceInitiatedShutdownBehavior", "Value": "terminate"}
    ec2(region).modify_instance_attribute(InstanceId=machine, **behaviour)


if __name__ == "__main__":
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        os.environ.pop(name, None)
    os.environ.update(ROLE_ALONE)
    import boto3

    terminate_on_shutdown(request, lambda region: boto3.client("ec2", region_name=region))
