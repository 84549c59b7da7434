"""A machine of AWS that shuts itself down is terminated, not stopped, so that its disk is not billed any more."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from mlcd.clouds.skypilot import terminate
from mlcd.clouds.skypilot.task import TRIES_AT_BOOT, first_boot
from mlcd.clouds.skypilot.terminate import METADATA, ask, signed, terminate_on_shutdown
from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Configuration, Offer

CPU = Offer("c5.xlarge", 0.17, 4, 8, cloud="aws", region="us-east-1", minimum_billed_s=60)
KEYS = {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "a/secret+", "Token": "a token/of=the+role"}
AT, REGION = "20260801T120000Z", "eu-west-1"


def order(offer: Offer = CPU, lifetime_s: float | None = 1_200.0) -> Launch:
    return Launch("digits-1-1", Configuration(offer, 1), Purpose.PROBE, 1e6, lifetime_s, 0)


@pytest.fixture
def moto_url() -> Iterator[str]:
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def test_a_machine_tells_aws_that_its_shutdown_terminates_it(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    boto3 = pytest.importorskip("boto3")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    ec2 = boto3.client("ec2", region_name=REGION, endpoint_url=moto_url)
    image = ec2.describe_images()["Images"][0]["ImageId"]
    (machine,) = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1)["Instances"]
    metadata = {
        "instance-id": machine["InstanceId"],
        "placement/region": REGION,
        "iam/security-credentials/": "skypilot-v1",
        "iam/security-credentials/skypilot-v1": json.dumps(KEYS),
    }

    def on_the_machine(url: str, headers: Mapping[str, str], method: str = "GET", body: str | None = None) -> str:
        if not url.startswith(METADATA):
            return ask(url, headers, method, body)
        if method == "PUT":
            return "token"
        assert headers == {"X-aws-ec2-metadata-token": "token"}
        return metadata[url.removeprefix(f"{METADATA}/meta-data/")]

    def behaviour() -> str:
        query = {"InstanceId": machine["InstanceId"], "Attribute": "instanceInitiatedShutdownBehavior"}
        return str(ec2.describe_instance_attribute(**query)["InstanceInitiatedShutdownBehavior"]["Value"])

    assert behaviour() == "stop"
    terminate_on_shutdown(on_the_machine, moto_url, AT)
    assert behaviour() == "terminate"


def test_the_request_goes_to_the_region_of_the_machine() -> None:
    urls = []

    def on_the_machine(url: str, headers: Mapping[str, str], method: str = "GET", body: str | None = None) -> str:
        urls.append(url)
        return REGION if url.endswith("region") else json.dumps(KEYS) if url.endswith("v1") else "skypilot-v1"

    terminate_on_shutdown(on_the_machine, "", AT)
    assert urls[-1] == f"https://ec2.{REGION}.amazonaws.com/"


def test_the_request_is_signed_as_amazons_own_client_signs_it() -> None:
    auth = pytest.importorskip("botocore.auth")
    request_of = pytest.importorskip("botocore.awsrequest").AWSRequest
    keys = pytest.importorskip("botocore.credentials").Credentials(*KEYS.values())
    host, body = f"ec2.{REGION}.amazonaws.com", "Action=ModifyInstanceAttribute&InstanceId=i-1"
    ours = signed(KEYS, REGION, host, body, AT)
    request = request_of("POST", f"https://{host}/", {"Content-Type": ours["content-type"]}, body.encode())
    request.context["timestamp"] = AT
    theirs = auth.SigV4Auth(keys, "ec2", REGION)
    theirs._modify_request_before_signing(request)
    to_sign = theirs.string_to_sign(request, theirs.canonical_request(request))
    assert ours["authorization"].endswith(f"Signature={theirs.signature(to_sign, request)}")
    assert f"Credential={theirs.scope(request)}," in ours["authorization"]


def test_the_request_is_sent_at_the_first_boot() -> None:
    _, command = first_boot(order(), 0.0)
    assert yaml.safe_load(f"runcmd:\n- {command}") == {"runcmd": [command]}, "as SkyPilot pastes it"
    assert len(command) < 4_000, "AWS takes 16 KB in all, and the user's own commands need some of it"
    python = f"python3 -I - {TRIES_AT_BOOT}"
    assert python in command
    unpacked = subprocess.run(["sh", "-c", command.replace(python, "cat")], capture_output=True, text=True, check=True)
    assert unpacked.stdout == Path(terminate.__file__).read_text(encoding="utf-8")


def test_a_spot_machine_sends_no_request() -> None:
    assert len(first_boot(order(replace(CPU, spot=True)), 0.0)) == 1, "AWS terminates it anyway"


def test_a_machine_without_a_lifetime_schedules_no_end() -> None:
    assert first_boot(order(lifetime_s=None), 0.0) == ()
