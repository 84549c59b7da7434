"""Lambda's REST routes in a box, used by boto3."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError
from mlcd_box.cloud.functions.api import api, is_for_lambda
from mlcd_box.cloud.functions.pool import CallResult, Pool
from mlcd_box.cloud.functions.runtime import NAME
from mlcd_box.cloud.functions.service import Service
from mlcd_box.events import EventLog

ONCE = Config(retries={"total_max_attempts": 1})
ROLE = "arn:aws:iam::123456789012:role/own"


class Echo:
    """An environment that returns its payload."""

    id, init_s = "e", 0.1

    def call(self, payload: bytes, request_id: str, timeout_s: float) -> CallResult:
        return CallResult(b'{"errorType": "Oops"}', "Unhandled") if b"fail" in payload else CallResult(payload)

    def end(self) -> None:
        """Nothing to do."""


class Body(io.BytesIO):
    """A response body with the interface that botocore needs."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.read()


@pytest.fixture
def client(tmp_path: Path) -> Any:
    """A real boto3 client whose requests go directly to the application, without a network."""
    clock = iter(range(1_000, 1_000_000, 10))
    service = Service(
        "us-east-1",
        lambda function: Echo(),
        Pool(lambda: 10, lambda: 0.0),
        EventLog(tmp_path / "events.jsonl"),
        later=lambda seconds, do: do(),
        now_s=lambda: float(next(clock)),
    )
    application = api({"us-east-1": service}, tmp_path)
    client = boto3.client("lambda", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x", config=ONCE)

    def send(request: Any, **_: Any) -> AWSResponse:
        path, body, answer = request.url.partition(".com")[2], request.body or b"", {}
        environ = {
            "REQUEST_METHOD": request.method,
            "PATH_INFO": path.partition("?")[0],
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body),
            **{f"HTTP_{name.upper().replace('-', '_')}": _text(value) for name, value in request.headers.items()},
        }
        assert is_for_lambda(environ)
        data = application(
            environ, lambda status, headers: answer.update(status=int(status[:3]), headers=dict(headers))
        )
        return AWSResponse(request.url, answer["status"], answer["headers"], Body(b"".join(data)))

    client.meta.events.register("before-send.lambda", send)
    return client


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else value


def create(client: Any, **more: Any) -> dict[str, Any]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as code:
        code.writestr("own.py", "")
    about = {"FunctionName": "f", "Runtime": NAME, "Role": ROLE, "Handler": "own.handler", "MemorySize": 512}
    return dict(client.create_function(**{**about, "Code": {"ZipFile": packed.getvalue()}, **more}))


def test_a_function_is_created_described_changed_and_deleted(client: Any) -> None:
    assert create(client, Tags={"who": "me"})["MemorySize"] == 512
    assert client.get_function(FunctionName="f")["Configuration"]["State"] == "Active"
    assert client.list_tags(Resource=client.list_functions()["Functions"][0]["FunctionArn"])["Tags"] == {"who": "me"}
    changed = client.update_function_configuration(FunctionName="f", MemorySize=1_024, Timeout=900)
    assert (changed["MemorySize"], changed["Timeout"], changed["Handler"]) == (1_024, 900, "own.handler")
    client.delete_function(FunctionName="f")
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.get_function(FunctionName="f")


def test_a_call_waits_for_its_answer_or_is_queued(client: Any) -> None:
    create(client)
    answer = client.invoke(FunctionName="f", Payload=json.dumps({"a": 1}))
    assert (answer["StatusCode"], json.loads(answer["Payload"].read())) == (200, {"a": 1})
    assert "FunctionError" not in answer
    assert client.invoke(FunctionName="f", Payload='"fail"')["FunctionError"] == "Unhandled"
    assert client.invoke(FunctionName="f", InvocationType="Event", Payload="1")["StatusCode"] == 202


def test_errors_are_exceptions_that_boto3_knows(client: Any) -> None:
    create(client)
    with pytest.raises(client.exceptions.ResourceConflictException):
        create(client)
    with pytest.raises(client.exceptions.InvalidParameterValueException, match="memorySize"):
        client.update_function_configuration(FunctionName="f", MemorySize=20_000)
    with pytest.raises(client.exceptions.InvalidParameterValueException, match="no runtime but"):
        create(client, FunctionName="g", Runtime="nodejs22.x")
    client.put_function_concurrency(FunctionName="f", ReservedConcurrentExecutions=0)
    with pytest.raises(ClientError, match="TooManyRequestsException"):
        client.invoke(FunctionName="f")


def test_a_layer_has_versions_and_a_function_keeps_the_one_it_has(client: Any, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as code:
        code.writestr("python/x.py", "")
    arns = [
        client.publish_layer_version(LayerName="l", Content={"ZipFile": packed.getvalue()})["LayerVersionArn"]
        for _ in range(2)
    ]
    assert [arn.rpartition(":")[2] for arn in arns] == ["1", "2"]
    (listed,) = client.list_layers()["Layers"]
    assert listed["LatestMatchingVersion"]["LayerVersionArn"] == arns[1]
    assert create(client, Layers=arns[:1])["Layers"][0]["Arn"] == arns[0]
    client.delete_layer_version(LayerName="l", VersionNumber=1)
    assert [each["Version"] for each in client.list_layer_versions(LayerName="l")["LayerVersions"]] == [2]
