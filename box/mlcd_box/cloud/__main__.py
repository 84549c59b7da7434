"""python -m mlcd_box.cloud BOX IMAGE: the cloud of a box, in its network namespace, until it is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

GATEWAY, PORT = "172.31.255.254", 5000
"""An address in moto's default VPC, outside of its subnets."""
ENDPOINT = f"http://{GATEWAY}:{PORT}"
FUNCTIONS = {"us-east-1": "172.31.255.1", "us-west-2": "172.31.255.2"}
"""The address of AWS for a region's functions. By it, S3 recognises requests from within the region."""
AMI = "ami-0b0c5e7a"
KEYS = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}


def main(box: Path, image: Path) -> None:
    """Serve until killed."""
    # Before the imports below: moto reads its settings when it is imported.
    (box / "amis.json").write_text(json.dumps([_ami()]))
    os.environ.update(MOTO_AMIS_PATH=str(box / "amis.json"), MOTO_IAM_LOAD_MANAGED_POLICIES="true", MOTO_PORT=str(PORT))
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import run_simple

    from mlcd_box.cloud.box_api import box_api
    from mlcd_box.cloud.ec2 import Ec2
    from mlcd_box.cloud.faults import Faults
    from mlcd_box.cloud.functions.api import api, is_for_lambda
    from mlcd_box.cloud.functions.https import serve_by_name
    from mlcd_box.cloud.functions.services import services
    from mlcd_box.cloud.market import Market
    from mlcd_box.cloud.metadata import ADDRESS, serve_metadata
    from mlcd_box.cloud.traffic import with_faults_and_metering
    from mlcd_box.events import EventLog

    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    for command in (
        "ip link set lo up",
        "ip link add br0 type bridge",
        f"ip addr add {GATEWAY}/16 dev br0",
        "ip link set br0 up",
        f"ip addr add {ADDRESS}/32 dev br0",
        *(f"ip addr add {address}/32 dev br0" for address in FUNCTIONS.values()),
    ):
        subprocess.run(command.split(), check=True)
    faults, market = Faults(box / "faults.json"), Market(box / "market.json")
    ec2 = Ec2(box, image, ENDPOINT, EventLog(box / "events.jsonl"), faults, market)
    ec2.install()
    threading.Thread(target=ec2.keep_market, daemon=True).start()
    threading.Thread(target=serve_metadata(ec2).serve_forever, daemon=True).start()
    moto = with_faults_and_metering(DomainDispatcherApplication(create_backend_app), ec2.faults, ec2.events)
    by_region = services(box, ec2.events, ec2.faults)
    test_api, functions = box_api(ec2, by_region), api(by_region, box / "functions")

    def application(environ: dict[str, Any], respond: Any) -> Any:
        is_test_api = environ["PATH_INFO"].startswith("/box/")
        return (test_api if is_test_api else functions if is_for_lambda(environ) else moto)(environ, respond)

    serve_by_name(box, GATEWAY, application)
    threading.Timer(0.5, _set_up_account, args=(box,)).start()
    run_simple("0.0.0.0", PORT, application, threaded=True, request_handler=MotoRequestHandler)


def _set_up_account(box: Path) -> None:
    """Set up the account like a real one: a default VPC with an Internet gateway, and SkyPilot's role.

    Without the role, SkyPilot would create it at the first launch and wait for half a minute.
    """
    import boto3

    from mlcd_box.cloud.metadata import ROLE
    from mlcd_box.offers import REGIONS

    for region in REGIONS:
        ec2 = boto3.client("ec2", endpoint_url=f"http://127.0.0.1:{PORT}", region_name=region, **KEYS)
        gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=ec2.describe_vpcs()["Vpcs"][0]["VpcId"])
        table = ec2.describe_route_tables()["RouteTables"][0]["RouteTableId"]
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    iam = boto3.client("iam", endpoint_url=f"http://127.0.0.1:{PORT}", region_name="us-east-1", **KEYS)
    iam.create_instance_profile(InstanceProfileName=ROLE)
    iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument="{}")
    iam.add_role_to_instance_profile(InstanceProfileName=ROLE, RoleName=ROLE)
    (box / "ready").write_text("")


def _ami() -> dict[str, Any]:
    return {
        "ami_id": AMI,
        "state": "available",
        "public": True,
        "owner_id": "123456789012",
        "name": "skypilot-node",
        "image_location": "box",
        "sriov": "simple",
        "root_device_type": "ebs",
        "root_device_name": "/dev/sda1",
        "description": "a machine of the box",
        "image_type": "machine",
        "architecture": "x86_64",
        "virtualization_type": "hvm",
        "hypervisor": "xen",
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
