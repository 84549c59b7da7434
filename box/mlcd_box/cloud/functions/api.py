"""Lambda's REST routes, for the requests of boto3 and for those that Lithops sends itself."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from moto.s3.models import s3_backends

from mlcd_box.cloud.functions.archives import unpack
from mlcd_box.cloud.functions.records import ACCOUNT, Archive, Function, Layer
from mlcd_box.cloud.functions.rules import CONCURRENT, ApiError
from mlcd_box.cloud.functions.runtime import NAME
from mlcd_box.cloud.functions.service import Service

Json = dict[str, Any]
Headers = dict[str, str]
Reply = tuple[int, Json | bytes | None, Headers]
PATH = re.compile(r"/20\d\d-\d\d-\d\d/(functions|layers|tags|account-settings)(/|$)")
_REGION = re.compile(r"Credential=[^/]+/\d+/([^/]+)/lambda/")


def is_for_lambda(environ: Json) -> bool:
    """Whether a request is for Lambda."""
    return PATH.match(environ["PATH_INFO"]) is not None and "/lambda/" in environ.get("HTTP_AUTHORIZATION", "")


@dataclass(frozen=True)
class Request:
    """A request. The variable parts of its path are passed separately."""

    service: Service
    body: bytes
    headers: Json
    archives: Path

    @property
    def document(self) -> Json:
        """Its JSON body."""
        return dict(json.loads(self.body)) if self.body else {}

    def archive(self, code: Json) -> Archive:
        """The zip file that the request contains, or whose bucket and key it contains."""
        if "ZipFile" in code:
            return unpack(base64.b64decode(code["ZipFile"]), self.archives)
        bucket, key = code.get("S3Bucket", ""), code.get("S3Key", "")
        stored = s3_backends[ACCOUNT]["aws"].get_object(bucket, key) if bucket else None
        if stored is None:
            words = f"Error occurred while GetObject. S3 Error Code: NoSuchKey. {bucket}/{key}"
            raise ApiError("InvalidParameterValueException", words)
        return unpack(stored.value, self.archives)


def api(services: dict[str, Service], archives: Path) -> Callable[[Json, Callable[..., Any]], Iterable[bytes]]:
    """Lambda of all regions, as a WSGI application."""

    def answer(environ: Json, respond: Callable[..., Any]) -> Iterable[bytes]:
        signed = _REGION.search(environ.get("HTTP_AUTHORIZATION", ""))
        service = services.get(signed[1] if signed else "", next(iter(services.values())))
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        try:
            reply = _route(environ)(Request(service, body, environ, archives))
        except ApiError as refused:
            error = {"Type": "User", "message": str(refused), "Message": str(refused)}
            reply = refused.status, error, {"x-amzn-ErrorType": refused.code}
        return _send(reply, respond)

    return answer


def _send(reply: Reply, respond: Callable[..., Any]) -> Iterable[bytes]:
    status, body, headers = reply
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "x-amzn-RequestId": str(uuid4()), **headers}
    respond(f"{status} -", [*headers.items(), ("Content-Length", str(len(data)))])
    return [data]


def _route(environ: Json) -> Callable[[Request], Reply]:
    """The handler for a method and path. Parts of Lambda's API that the box does not have are refused."""
    method, path = environ["REQUEST_METHOD"], unquote(environ["PATH_INFO"]).rstrip("/").split("/", 2)[2]
    for verb, pattern, do in ROUTES:
        if verb == method and (match := re.fullmatch(pattern, path)):
            parts = match.groups()
            return lambda request: do(request, *parts)
    raise ApiError("InvalidParameterValueException", f"the box has no {method} {path}")


def _create(request: Request) -> Reply:
    document, service = request.document, request.service
    if document.get("Runtime") != NAME:
        raise ApiError("InvalidParameterValueException", f"the box has no runtime but {NAME}, from a zip file")
    function = Function(
        name=document["FunctionName"],
        region=service.region,
        runtime=document["Runtime"],
        handler=document["Handler"],
        role=document["Role"],
        code=request.archive(document["Code"]),
        tags=document.get("Tags", {}),
        created_at=service.now_s(),
        **{"memory_mb": 128, "timeout_s": 3, "layers": (), "variables": {}, "description": "", **_changes(request)},
    )
    return 201, service.create(function).described(service.now_s()), {}


def _changes(request: Request) -> Json:
    """The fields of a function that a request sets."""
    document, changes = request.document, {}
    for key, field in {
        "MemorySize": "memory_mb",
        "Timeout": "timeout_s",
        "Handler": "handler",
        "Role": "role",
        "Description": "description",
    }.items():
        if key in document and (field not in ("handler", "role") or "Code" not in document):
            changes[field] = document[key]
    if "Layers" in document:
        changes["layers"] = tuple(request.service.layer(arn) for arn in document["Layers"])
    if "Environment" in document:
        changes["variables"] = document["Environment"].get("Variables") or {}
    return changes


def _configure(request: Request, name: str) -> Reply:
    changed = request.service.update(name, **_changes(request))
    return 200, changed.described(request.service.now_s()), {}


def _update_code(request: Request, name: str) -> Reply:
    changed = request.service.update(name, code=request.archive(request.document))
    return 200, changed.described(request.service.now_s()), {}


def _get(request: Request, name: str) -> Reply:
    function = request.service.find(name)
    described = function.described(request.service.now_s())
    return 200, {"Configuration": described, "Code": {"RepositoryType": "S3"}, "Tags": dict(function.tags)}, {}


def _get_configuration(request: Request, name: str) -> Reply:
    return 200, request.service.find(name).described(request.service.now_s()), {}


def _list(request: Request) -> Reply:
    service = request.service
    return 200, {"Functions": [each.described(service.now_s()) for each in service.functions.values()]}, {}


def _delete(request: Request, name: str) -> Reply:
    request.service.delete(name)
    return 204, None, {}


def _invoke(request: Request, name: str) -> Reply:
    kind = request.headers.get("HTTP_X_AMZ_INVOCATION_TYPE", "RequestResponse")
    if kind == "DryRun":
        request.service.find(name)
        return 204, None, {}
    if kind == "Event":
        return 202, None, {"x-amzn-RequestId": request.service.queue(name, request.body)}
    answer = request.service.call(name, request.body)
    failed = {"X-Amz-Function-Error": answer.error} if answer.error else {}
    return 200, answer.payload, {"X-Amz-Executed-Version": "$LATEST", **failed}


def _reserve(request: Request, name: str) -> Reply:
    wanted = int(request.document["ReservedConcurrentExecutions"])
    request.service.reserve(name, wanted)
    return 200, {"ReservedConcurrentExecutions": wanted}, {}


def _get_reserved(request: Request, name: str) -> Reply:
    reserved = request.service.find(name).reserved
    return 200, {} if reserved is None else {"ReservedConcurrentExecutions": reserved}, {}


def _release(request: Request, name: str) -> Reply:
    request.service.reserve(name, None)
    return 204, None, {}


def _set_retries(request: Request, name: str) -> Reply:
    retries = int(request.document.get("MaximumRetryAttempts", 2))
    if not 0 <= retries <= 2:
        raise ApiError("InvalidParameterValueException", "MaximumRetryAttempts is between 0 and 2")
    function = request.service.set_retries(name, retries)
    return 200, {"FunctionArn": function.arn, "MaximumRetryAttempts": retries}, {}


def _tags(request: Request, arn: str) -> Reply:
    return 200, {"Tags": dict(request.service.find(arn).tags)}, {}


def _publish(request: Request, name: str) -> Reply:
    document = request.document
    archive = request.archive(document["Content"])
    layer = request.service.publish(
        name, archive, document.get("Description", ""), document.get("CompatibleRuntimes", ())
    )
    content = {"CodeSha256": archive.sha256, "CodeSize": archive.packed}
    return 201, {"LayerArn": layer.arn, "Content": content, **layer.described()}, {}


def _layers(request: Request) -> Reply:
    newest = [versions[-1] for versions in request.service.layers.values()]
    return 200, {"Layers": [_layer(each) for each in newest]}, {}


def _layer(newest: Layer) -> Json:
    return {"LayerName": newest.name, "LayerArn": newest.arn, "LatestMatchingVersion": newest.described()}


def _versions(request: Request, name: str) -> Reply:
    versions = reversed(request.service.layers.get(name, []))
    return 200, {"LayerVersions": [each.described() for each in versions]}, {}


def _remove_layer(request: Request, name: str, version: str) -> Reply:
    request.service.remove_layer(name, int(version))
    return 204, None, {}


def _account(request: Request) -> Reply:
    reserved = sum(each.reserved or 0 for each in request.service.functions.values())
    limits = {"ConcurrentExecutions": CONCURRENT, "UnreservedConcurrentExecutions": CONCURRENT - reserved}
    return 200, {"AccountLimit": limits, "AccountUsage": {"FunctionCount": len(request.service.functions)}}, {}


ROUTES: tuple[tuple[str, str, Callable[..., Reply]], ...] = (
    ("POST", "functions", _create),
    ("GET", "functions", _list),
    ("GET", "functions/([^/]+)", _get),
    ("DELETE", "functions/([^/]+)", _delete),
    ("GET", "functions/([^/]+)/configuration", _get_configuration),
    ("PUT", "functions/([^/]+)/configuration", _configure),
    ("PUT", "functions/([^/]+)/code", _update_code),
    ("POST", "functions/([^/]+)/invocations", _invoke),
    ("PUT", "functions/([^/]+)/concurrency", _reserve),
    ("GET", "functions/([^/]+)/concurrency", _get_reserved),
    ("DELETE", "functions/([^/]+)/concurrency", _release),
    ("PUT", "functions/([^/]+)/event-invoke-config", _set_retries),
    ("GET", "tags/(.+)", _tags),
    ("GET", "layers", _layers),
    ("POST", "layers/([^/]+)/versions", _publish),
    ("GET", "layers/([^/]+)/versions", _versions),
    ("DELETE", "layers/([^/]+)/versions/([0-9]+)", _remove_layer),
    ("GET", "account-settings", _account),
)
