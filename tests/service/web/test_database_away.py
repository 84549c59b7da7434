"""While the database is away, no answer of any route says where it is or how one gets in: that is for the log."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mlcd_fixtures.postgres import PASSWORD, PostgresServer
from stage import API, JOB, Stage, staged

from mlcd.core.errors import LedgerError

BODIES = {
    "submit_run": {"kind": "train", "job": JOB},
    "check_run": {"kind": "train", "job": JOB},
    "sign_in": {"token": "mlcd_" + "a" * 43},
    "add_member": {"name": "nina", "role": "viewer"},
}


def requests(stage: Stage) -> list[tuple[str, str, object]]:
    """Each route of the API document, with something in place of its parameters; and a page."""
    document = stage.app.openapi()["paths"]
    found = [
        (method.upper(), re.sub(r"\{\w+\}", "1", path), BODIES.get(route["operationId"]))
        for path, methods in document.items()
        for method, route in methods.items()
    ]
    return [*found, ("GET", "/", None), ("GET", "/runs/demo-1", None)]


@pytest.mark.parametrize("mode", ["service", "ui"])  # the gate of a service lets nobody in; there, routes are reached
def test_no_answer_shows_the_url_of_a_database_that_is_away(
    mode: str, tmp_path: Path, postgres_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    url = postgres_server.new_database()
    parts = urlsplit(url)
    secrets = [PASSWORD, url, "postgresql:", f"{parts.username}@", f"{parts.hostname}:{parts.port}", parts.path[1:]]
    with staged(tmp_path, url, mode=mode) as stage:
        stage.ask("GET", f"{API}/health")
        asked = requests(stage)
        postgres_server.stop()
        with pytest.raises(LedgerError):
            stage.look()
        while stage.ask("GET", f"{API}/health").status == 200:  # until the feed has noticed
            pass
        statuses = set()
        for method, path, body in asked:
            if "events" in path:
                continue  # a stream has no end
            told = stage.ask(method, path, "ron" if mode == "service" else None, body)
            statuses.add(told.status)
            shown = told.body.decode() + str(told.headers)
            assert not [secret for secret in secrets if secret in shown], f"{method} {path}: {shown[:300]}"
        assert 503 in statuses
        assert 500 not in statuses
        postgres_server.start()
    assert PASSWORD not in caplog.text
