"""The processes of a job, and the variables by which each framework finds its peers."""

from __future__ import annotations

import json

import pytest

from mlcd.clouds.frameworks import Process, processes
from mlcd.core.job import Communication

ADDRESSES = ("10.0.0.1", "10.0.0.2", "10.0.0.3")


def all_reduce(addresses: tuple[str, ...] = ADDRESSES, devices: int = 1) -> list[Process]:
    return processes(Communication.ALL_REDUCE, addresses, 29_500, devices)


def with_server(addresses: tuple[str, ...] = ADDRESSES) -> list[Process]:
    return processes(Communication.PARAMETER_SERVER, addresses, 29_500)


def task(process: Process) -> dict[str, object]:
    found: dict[str, object] = json.loads(process.environment["TF_CONFIG"])["task"]
    return found


def cluster(process: Process) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(process.environment["TF_CONFIG"])["cluster"]
    return found


def test_all_reduce_has_one_process_a_node_and_the_first_reports():
    jobs = all_reduce()
    assert [process.node for process in jobs] == [0, 1, 2]
    assert [process.reports for process in jobs] == [True, False, False]
    assert all(process.ends for process in jobs)


def test_torchrun_gets_a_variable_for_each_of_its_flags():
    for node, process in enumerate(all_reduce(devices=4)):
        told = {key: value for key, value in process.environment.items() if key.startswith("PET_")}
        assert told == {
            "PET_NNODES": "3",
            "PET_NODE_RANK": str(node),
            "PET_NPROC_PER_NODE": "4",
            "PET_MASTER_ADDR": "10.0.0.1",
            "PET_MASTER_PORT": "29500",
        }


def test_torchrun_itself_reads_these_variables(monkeypatch: pytest.MonkeyPatch):
    run = pytest.importorskip("torch.distributed.run", reason="torch is not installed")
    for key, value in all_reduce(devices=2)[1].environment.items():
        monkeypatch.setenv(key, value)
    told = run.parse_args(["train.py"])
    assert (told.nnodes, told.node_rank, told.nproc_per_node) == ("3", 1, "2")
    assert (told.master_addr, told.master_port) == ("10.0.0.1", 29_500)


def test_a_script_without_torchrun_finds_its_rank_and_the_first_node():
    for node, process in enumerate(all_reduce()):
        told = process.environment
        assert (told["RANK"], told["WORLD_SIZE"], told["LOCAL_RANK"]) == (str(node), "3", "0")
        assert (told["MASTER_ADDR"], told["MASTER_PORT"]) == ("10.0.0.1", "29500")


def test_jax_gets_its_coordinator_and_process_id():
    for node, process in enumerate(all_reduce()):
        told = process.environment
        assert told["JAX_COORDINATOR_ADDRESS"] == "10.0.0.1:29501"
        assert (told["JAX_NUM_PROCESSES"], told["JAX_PROCESS_ID"]) == ("3", str(node))


def test_tensorflow_has_only_workers_for_all_reduce():
    for node, process in enumerate(all_reduce()):
        assert cluster(process) == {"worker": ["10.0.0.1:29502", "10.0.0.2:29502", "10.0.0.3:29502"]}
        assert task(process) == {"type": "worker", "index": node}


def test_tensorflow_has_a_chief_a_server_and_a_worker_on_every_node():
    jobs = with_server()
    assert [(task(process)["type"], task(process)["index"], process.node) for process in jobs] == [
        ("chief", 0, 0),
        ("ps", 0, 0),
        ("worker", 0, 0),
        ("worker", 1, 1),
        ("worker", 2, 2),
    ]
    assert [process.reports for process in jobs] == [process.ends for process in jobs] == [True, *[False] * 4]
    assert all(cluster(process) == cluster(jobs[0]) for process in jobs)


def test_one_node_needs_no_parameter_server():
    alone = with_server(ADDRESSES[:1])
    assert [task(process)["type"] for process in alone] == ["worker"]
    assert alone[0].reports


@pytest.mark.parametrize("communication", Communication)
def test_no_two_listeners_share_an_address_and_a_port(communication: Communication):
    told = processes(communication, ADDRESSES, 29_500)[0].environment
    members = [member for group in json.loads(told["TF_CONFIG"])["cluster"].values() for member in group]
    listeners = [*members, told["JAX_COORDINATOR_ADDRESS"], f"{told['MASTER_ADDR']}:{told['MASTER_PORT']}"]
    assert len(set(listeners)) == len(listeners)


def test_a_task_written_for_skypilot_finds_its_variables():
    for node, process in enumerate(all_reduce(devices=8)):
        told = process.environment
        assert told["SKYPILOT_NODE_IPS"].splitlines() == list(ADDRESSES)
        assert (told["SKYPILOT_NUM_NODES"], told["SKYPILOT_NODE_RANK"]) == ("3", str(node))
        assert told["SKYPILOT_NUM_GPUS_PER_NODE"] == "8"
