"""The Ray backend without a cluster. `on_ray.py` needs one; it runs in a network namespace of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from mlcd.clouds.frameworks import processes
from mlcd.clouds.node_types import load_ray_types
from mlcd.clouds.ray import node
from mlcd.core.configuration import ProbeTime
from mlcd.core.errors import UserError
from mlcd.core.job import Communication

pytestmark = pytest.mark.live

INSIDE = Path(__file__).with_name("on_ray.py")
ALONE = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
"""A namespace with only the loopback interface, because Ray listens on all. Its end ends everything inside."""
ROOM = "ip link set lo up && mount -t tmpfs none /mnt && export RAY_TMPDIR=/mnt && "
TOO_LONG_S = 540
"""Below the ten minutes of any test; on a quiet machine it takes two or three."""

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'mlcd[ray]'")


def why_not_alone() -> str:
    """Why a cluster cannot be started here."""
    if os.geteuid() != 0:
        return "not root"
    lacking = [tool for tool in ("unshare", "ip", "mount", "bash") if shutil.which(tool) is None]
    if lacking:
        return f"{', '.join(lacking)} not found"
    tried = subprocess.run([*ALONE, "bash", "-c", f"{ROOM} true"], check=False, capture_output=True, text=True)
    return tried.stderr.strip()


def alone(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command without a network, and with no other Ray."""
    if why_not := why_not_alone():
        pytest.skip(f"no namespace for Ray: {why_not}")
    with subprocess.Popen(
        [*ALONE, "bash", "-c", f"{ROOM} {command}; exit $?"],  # bash stays, to reap orphaned processes
        cwd=folder,
        env={**os.environ, "MLCD_HOME": str(folder / "home"), "RAY_ADDRESS": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            out, err = running.communicate(timeout=TOO_LONG_S)
        finally:
            running.kill()
    return subprocess.CompletedProcess(command, running.returncode, out, err)


@needs_ray
@pytest.mark.night  # at each change: the same contract on nodes of this machine
def test_the_backend_contract_holds_on_a_cluster_of_three_nodes(tmp_path: Path) -> None:
    # At each change only one of the failures: the others are diagnosed by code that local nodes use, too.
    which = "-m ''" if os.environ.get("HYPOTHESIS_PROFILE") == "night" else "-k 'not advice or traceback'"
    root = INSIDE.parents[2]
    options = f"{which} -n 0 -v -rA --tb=short --durations=8 -c {root / 'pyproject.toml'} --rootdir {root}"
    done = alone(f"{sys.executable} -m pytest {options} --basetemp {tmp_path / 'inside'} {INSIDE}", tmp_path)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]


@needs_ray
@pytest.mark.parametrize(
    "address, message",
    [
        ("", "mlcd: no Ray cluster is running here: start one with `ray start --head`"),
        pytest.param(
            "127.0.0.1:1",
            "mlcd: no Ray cluster at 127.0.0.1:1 (Connection refused): start one",
            marks=pytest.mark.night,
        ),
        pytest.param("somewhere", "mlcd: Ray at somewhere: ", marks=pytest.mark.night),
    ],
)
def test_without_a_cluster_one_line_says_how_to_get_one(tmp_path: Path, address: str, message: str) -> None:
    (tmp_path / "job.yaml").write_text("run: python train.py\nmlcd: {work: 100, budget: $1}\n")
    done = alone(f"RAY_ADDRESS={address} {sys.executable} -m mlcd train job.yaml --on ray:types.yaml", tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith(message)
    assert "Traceback" not in done.stderr


def test_without_the_package_one_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("run: python train.py\nmlcd: {work: 100, budget: $1}\n")
    script = "import sys; sys.modules['ray'] = None; import mlcd.cli; mlcd.cli.main(sys.argv[1:])"
    command = [sys.executable, "-c", script, "train", str(tmp_path / "job.yaml"), "--on", "ray:types.yaml"]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, "MLCD_HOME": str(tmp_path)}
    )
    assert done.returncode == 2
    assert done.stderr == "mlcd: the ray backend needs an extra that is not installed: pip install 'mlcd[ray]'\n"


def test_a_type_is_an_offer_and_takes_a_whole_node(tmp_path: Path) -> None:
    file = tmp_path / "types.yaml"
    file.write_text(
        "types:\n"
        "  small: {cpus: 4, memory: 16GB, link: 10Gbit, usd_per_hour: $0.20}\n"
        "  gpu: {cpus: 8, memory: 64GB, link: 25Gbit, usd_per_hour: 3, accelerators: 'V100:2', tflops: 15.7,"
        " resource: v100}\n"
    )
    types = load_ray_types(file)
    small, gpu = types.offers
    assert types.bundle(small) == {"small": 1, "CPU": 4}
    assert types.bundle(gpu) == {"v100": 1, "CPU": 8, "GPU": 2}
    assert (gpu.accelerator, gpu.workers, gpu.tflops, gpu.network_gbps, gpu.usd_per_hour) == ("V100", 2, 31.4, 25, 3)
    assert types.probe_time == ProbeTime(600, 60)


@pytest.mark.parametrize(
    "text, message",
    [
        ("types: {}", "types: Dictionary should have at least 1 item"),
        ("a: [", "not YAML: "),
        ("types: {x: {cpus: 1, memory: 1GB, link: fast, usd_per_hour: 1}}", "types.x.link: 'fast': expected a rate"),
        (
            "types: {x: {cpus: 1, memory: 1GB, link: 1Gbit, usd_per_hour: 1, accelerators: 'V100:some'}}",
            "types.x.accelerators: 'V100:some': expected a name and a count, such as V100:4",
        ),
        ("types: {x: {cpus: 1, memory: 1GB, link: 1Gbit}}", "types.x.usd_per_hour: Field required"),
    ],
)
def test_an_error_in_a_file_of_types_names_its_position(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "types.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as refused:
        load_ray_types(file)
    assert str(refused.value).startswith(f"{file}: {message}")
    with pytest.raises(UserError, match=r"No such file or directory; give a file of node types, as ray:nodes\.yaml"):
        load_ray_types(tmp_path / "none.yaml")


def test_free_ports_are_consecutive_and_stay_reserved() -> None:
    first, second = node.free_ports(), node.free_ports()
    try:
        ports = [[held.getsockname()[1] for held in row] for row in (first, second)]
        assert all(row == list(range(row[0], row[0] + node.PORTS)) for row in ports if row)
        assert not set(ports[0]) & set(ports[1])
        if first:
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("", ports[0][0]))
    finally:
        for held in (*first, *second):
            held.close()


@pytest.mark.parametrize("communication", Communication)
def test_nodes_that_share_an_address_have_different_ports(communication: Communication) -> None:
    started = processes(communication, ["10.0.0.1", "10.0.0.1"], [4000, 5000])
    workers = [process.environment["TF_CONFIG"] for process in started]
    assert all('"worker": ["10.0.0.1:4002", "10.0.0.1:5002"]' in config for config in workers)
    assert {process.environment["MASTER_PORT"] for process in started} == {"4000"}
    assert {process.environment["JAX_COORDINATOR_ADDRESS"] for process in started} == {"10.0.0.1:4001"}
    assert processes(communication, ["a", "b"], 4000) == processes(communication, ["a", "b"], [4000, 4000])


def test_files_of_a_launch_are_not_visible_to_the_next_one(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)  # like an actor, in the copy that Ray keeps for all launches of a run
    for _ in range(2):
        one = node.Node()
        one.start("ls; touch left", {}, ("PATH",), "password")
        one._started[0].popen.wait(300)
        ((status, output),) = one.poll()
        one._started[0]._output.close()
        one.end(0.0)
        assert (status, output) == (0, "train.py\n")
        assert not Path(one._folder).exists()
    assert [each.name for each in tmp_path.iterdir()] == ["train.py"]
