"""The processes of a job on its nodes, and the environment variables by which each framework finds its peers.

Every framework reads its own variables and ignores the others. So all are set, and a job need not state its framework.

PyTorch      torchrun reads PET_*; a script without it reads MASTER_ADDR, RANK and WORLD_SIZE
TensorFlow   TF_CONFIG: MultiWorkerMirroredStrategy, or ParameterServerStrategy with its three roles
JAX          jax.distributed.initialize() reads JAX_COORDINATOR_ADDRESS; the script passes JAX_NUM_PROCESSES and
             JAX_PROCESS_ID to it
SkyPilot     SKYPILOT_*, for tasks that were written for it

MXNet, which the HeterBO paper also ran, was retired by its project in 2023.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlcd.core.configuration import Configuration
from mlcd.core.job import Communication, Job
from mlcd.planners.scale.nouns import ScalingTask, batch_of
from mlcd.planners.train.plans.plan_variables import plan_variables

TORCH, JAX, TENSORFLOW, CHIEF, SERVER = range(5)
"""Offsets from the first port of a node."""


@dataclass(frozen=True)
class Process:
    """A process of the job: its node and its environment variables.

    `reports`: its output contains the job's progress. `ends`: the job is over only when it has ended; False for a
    parameter server, which never ends by itself.
    """

    node: int
    environment: Mapping[str, str]
    reports: bool = False
    ends: bool = True


def processes(
    communication: Communication, addresses: Sequence[str], first_port: int | Sequence[int], devices: int = 1
) -> list[Process]:
    """The processes of a job on nodes with these addresses; the reporting one comes first.

    `first_port`: one for all nodes, or one for each node if several nodes share an address.
    """
    ports = [first_port] * len(addresses) if isinstance(first_port, int) else first_port
    first, port = addresses[0], ports[0]
    workers = [f"{address}:{own + TENSORFLOW}" for address, own in zip(addresses, ports, strict=True)]
    roles, cluster = [("worker", node) for node in range(len(addresses))], {"worker": workers}
    has_server = communication is Communication.PARAMETER_SERVER and len(addresses) > 1
    if has_server:  # a chief and a server on the first node, a worker on every node: the paper's figure 3
        roles = [("chief", 0), ("ps", 0), *roles]
        cluster |= {"chief": [f"{first}:{port + CHIEF}"], "ps": [f"{first}:{port + SERVER}"]}
    return [
        Process(
            node,
            {
                "MLCD_RANK": str(rank),
                "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": node}}),
                **_environment(addresses, node, port, devices),
            },
            reports=rank == 0,
            ends=rank == 0 or not has_server,
        )
        for rank, (role, node) in enumerate(roles)
    ]


def _environment(addresses: Sequence[str], node: int, port: int, devices: int) -> dict[str, str]:
    """The variables of a node that do not depend on its role."""
    count, rank, first, master_port = str(len(addresses)), str(node), addresses[0], str(port + TORCH)
    skypilot = {"SKYPILOT_NUM_NODES": count, "SKYPILOT_NODE_RANK": rank, "SKYPILOT_NODE_IPS": "\n".join(addresses)}
    on_a_node = {"SKYPILOT_NUM_GPUS_PER_NODE": str(devices), "PET_NPROC_PER_NODE": str(devices)}
    torchrun = {"PET_NNODES": count, "PET_NODE_RANK": rank, "PET_MASTER_ADDR": first, "PET_MASTER_PORT": master_port}
    torch = {"MASTER_ADDR": first, "MASTER_PORT": master_port, "WORLD_SIZE": count, "RANK": rank, "LOCAL_RANK": "0"}
    jax = {"JAX_COORDINATOR_ADDRESS": f"{first}:{port + JAX}", "JAX_NUM_PROCESSES": count, "JAX_PROCESS_ID": rank}
    return {**skypilot, **on_a_node, **torchrun, **torch, **jax}


def scaling_environment(job: Job, configuration: Configuration) -> dict[str, str]:
    """Variables with what MLCD chose besides machines (a training plan or a batch), and the target. May be empty."""
    variables = plan_variables(job, configuration)
    if job.target is not None:
        variables["MLCD_TARGET"] = f"{'>=' if job.target.at_least else '<='}{job.target.value!r}"
    if batch_of(configuration) is not None:
        variables["MLCD_BATCH"] = str(batch_of(configuration))
    if isinstance(job.ask, ScalingTask):
        variables["MLCD_LR_RULE"] = str(job.ask.learning_rate)
    return variables


def checkpoint_environment(folder: str, label: str) -> dict[str, str]:
    """Variables with the checkpoint folder, which all nodes share, and the file that asks a launch to save and exit."""
    return {"MLCD_CHECKPOINT_DIR": folder, "MLCD_LEAVE": f"{folder}/.leave-{label}"}
