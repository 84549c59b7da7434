"""Servers on this machine: found, started, ended with the process that started them; and their error messages."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mlcd.core.errors import BackendError, UnknownName, UserError
from mlcd.planners.functions.storages.local import available, find_dynalite, reachable, serve

pytestmark = pytest.mark.live

OWNER = """
import sys
from pathlib import Path
from mlcd.planners.functions.storages.local import serve
print(serve(sys.argv[1], Path(sys.argv[2])).url, flush=True)
sys.stdin.read()
"""


def listens(url: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", urlsplit(url).port)) == 0


@pytest.mark.parametrize("name", ["vm-ps", "s3"])
def test_a_server_ends_with_whoever_started_it_even_if_that_is_killed_and_leaves_no_socket(tmp_path, name):
    if (why := available(name)) is not None:
        pytest.skip(why)
    command = [sys.executable, "-c", OWNER, name, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        url = owner.stdout.readline().strip()
        assert listens(url)
        ports = own_ports(tmp_path)
        os.kill(owner.pid, signal.SIGKILL)
    until_s = time.monotonic() + 300
    while (listens(url) or sockets(ports)) and time.monotonic() < until_s:
        time.sleep(0.05)
    assert not listens(url)
    assert sockets(ports) == []


def own_ports(folder: Path) -> list[str]:
    """All ports that SeaweedFS was told, as it notes them."""
    options = folder / "mini.options"
    return re.findall(r"port\S*?=(\d+)", options.read_text()) if options.exists() else []


def sockets(ports: list[str]) -> list[Path]:
    """What it has in the system's folder for temporary files."""
    return [path for path in Path("/tmp").glob("seaweedfs-*.sock") if path.stem.rpartition("-")[2] in ports]


def test_a_server_ends_with_its_block_and_may_be_stopped_twice(tmp_path):
    with serve("vm-ps", tmp_path) as server:
        assert listens(server.url)
    assert not listens(server.url)
    server.stop()


def test_the_error_about_a_server_that_fails_to_start_has_its_last_line(tmp_path, monkeypatch):
    broken = tmp_path / "dynalite"
    broken.write_text("#!/bin/sh\necho no such port >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("MLCD_DYNALITE", str(broken))
    if (why := available("dynamodb")) is not None:
        pytest.skip(why)
    with pytest.raises(BackendError, match="dynamodb ended as it started: no such port"):
        serve("dynamodb", tmp_path)


@pytest.mark.parametrize(
    ("name", "to_do"),
    [("elasticache", "apt-get install redis-server"), ("dynamodb", "npm install --prefix .npm dynalite")],
)
def test_the_error_about_a_missing_server_says_what_to_install(name, to_do, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert to_do in available(name)
    with pytest.raises(UserError, match=to_do):
        serve(name, tmp_path)


def test_the_parameter_server_is_always_available():
    assert available("vm-ps") is None


def test_an_unknown_storage_is_refused():
    with pytest.raises(UnknownName, match="unknown storage 'minio'"):
        available("minio")


def test_dynalite_is_found_in_npms_folder_of_a_parent_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("MLCD_DYNALITE", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / ".npm" / "node_modules" / ".bin" / "dynalite"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert find_dynalite() == str(program)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("s3", "http://127.0.0.1:{}/bucket"),
        ("dynamodb", "http://127.0.0.1:{}/table"),
        ("elasticache", "redis://127.0.0.1:{}/0"),
        ("vm-ps", "tcp://127.0.0.1:{}"),
    ],
)
def test_the_error_about_a_storage_that_does_not_answer_is_one_line(name, form):
    pytest.importorskip("redis" if name == "elasticache" else "boto3" if name != "vm-ps" else "json")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, but nobody listens
        url = form.format(nobody.getsockname()[1])
        with pytest.raises(UserError, match=f"{name} at {url} has not answered .* correct `endpoints: {name}`") as told:
            reachable(name, url, retry_s=0.1)
    assert "\n" not in str(told.value)


def test_a_server_with_another_protocol_is_refused(tmp_path):
    with serve("vm-ps", tmp_path) as server, pytest.raises(UserError, match="elasticache at redis://"):
        reachable("elasticache", server.url.replace("tcp", "redis") + "/0", retry_s=0.1)
