"""A client that openapi-python-client makes of the API's document imports, and reads every route of a service."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
from mlcd_fixtures.api import BEGUN, REFUSED, WAITING, fill
from stage import API, Stage, staged

from mlcd.service.web.app import api_document
from mlcd.service.web.routes.catalog import _examples

NAME = "mlcd_client"
STREAMS = (f"{API}/events", f"{API}/runs/{{run}}/events")
"""They answer with events and not with JSON; tests/service/web/test_feed.py watches them."""
TOOLS = {"net-a-1": "triton", "tuned-1": "lambda", "trained-1": "lambda"}
UNDECIDED = (409, 404)
"""A run that was stopped before its decision has nothing to export, and simulated machines write no log."""


class Wire(httpx.BaseTransport):
    """Hands what the client sends to the app."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path, headers = request.url.raw_path.decode(), dict(request.headers)
        told = self._stage.ask(request.method, path, headers=headers, raw=request.read(), host=None)
        return httpx.Response(told.status, headers=dict(told.headers), content=told.body)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The generated package."""
    if find_spec("openapi_python_client") is None:
        pytest.skip("openapi-python-client is not here: pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("generated")
    (folder / "api.json").write_text(json.dumps(api_document()))
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", "api.json", "--meta", "none"]
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # it formats with ruff
    done = subprocess.run(
        [*command, "--output-path", NAME, "--fail-on-warning"],
        cwd=folder, env=tools, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    yield import_module(NAME)
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """With a run of every kind."""
    home = tmp_path_factory.mktemp("home")
    with staged(home) as stage:
        fill(stage.state.ledger, home / "recording", _examples())
        stage.look()
        yield stage


MAY_LACK = ("/logs", "/usage", "/export", "/job")
"""What a run has only on real machines, once it is decided, or if it was submitted."""


def arguments(operation: dict[str, Any], run: str) -> dict[str, Any]:
    """What a route cannot do without."""
    known = {
        "run": run,
        "runs": ",".join(BEGUN[:6]),
        "to": import_module(f"{NAME}.models").ExportTo(TOOLS.get(run, "skypilot")),
    }
    return {each["name"]: known[each["name"]] for each in operation.get("parameters", []) if each["required"]}


def test_every_module_of_the_client_imports(client: Any) -> None:
    folder = Path(client.__file__).parent
    modules = [".".join(path.relative_to(folder.parent).with_suffix("").parts) for path in folder.rglob("*.py")]
    assert len(modules) > 150
    for name in modules:
        import_module(name)


@pytest.mark.parametrize("run", [*BEGUN, WAITING, REFUSED])
def test_the_client_reads_every_route_and_loses_nothing_of_it(run: str, client: Any, stage: Stage) -> None:
    asking = client.AuthenticatedClient(
        "http://localhost", stage.tokens["ada"], httpx_args={"transport": Wire(stage)}, raise_on_unexpected_status=True
    )
    read = 0
    for path, methods in api_document()["paths"].items():
        if "get" not in methods or path in STREAMS or ("{run}" not in path and run != BEGUN[0]):
            continue
        operation = methods["get"]
        name = re.sub(r"[ -]", "_", operation["operationId"])
        module = import_module(f"{NAME}.api.{operation['tags'][0]}.{name}")
        answer = module.sync_detailed(client=asking, **arguments(operation, run))
        if answer.status_code in UNDECIDED and (run not in BEGUN or any(part in path for part in MAY_LACK)):
            assert answer.parsed.error
            continue
        assert answer.status_code == 200, f"{path}: {answer.content!r}"
        if answer.headers["content-type"] == "application/json":
            assert answer.parsed.to_dict() == json.loads(answer.content), path
        read += 1
    assert read >= (16 if run == BEGUN[0] else 1)
