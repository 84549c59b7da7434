"""The JAX noise meter, against a brute-force computation from per-sample gradients; on one device, four and two hosts.

The cases run in processes of their own, since a process's devices are what it was started with.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import mlcd_tracker

pytestmark = [pytest.mark.live, pytest.mark.night]  # at each change: test_noise_scale.py

ROOT = Path(mlcd_tracker.__file__).parents[1]
SEEDS, STEPS = 10, 120

if find_spec("jax") is None:
    pytest.skip("JAX is not installed: pip install -e '.[frameworks]'", allow_module_level=True)


def on_devices(devices: int) -> dict[str, Any]:
    """How many errors off the meter is for each seed, and whether what is learned stays the same."""
    from functools import partial

    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from mlcd_tracker.jax import NoiseMeter, mean_and_norms, value_and_grad

    assert jax.device_count() == devices
    mesh = Mesh(np.array(jax.devices()), ("data",))
    spread = NamedSharding(mesh, PartitionSpec("data"))

    def loss(parameters, x, y):
        logits = jnp.tanh(x @ parameters["in"]) @ parameters["out"]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1).mean()

    @partial(jax.jit, static_argnames="parts")
    def step(parameters, x, y, parts):
        return value_and_grad(loss, parts)(parameters, x, y)

    @jax.jit
    @partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(PartitionSpec(), PartitionSpec("data"), PartitionSpec("data")),
        out_specs=PartitionSpec(),
        check_vma=False,
    )
    def mapped(parameters, x, y):
        return mean_and_norms(jax.grad(loss)(parameters, x, y), "data")

    size, off, same = 32, [], True
    for seed in range(SEEDS):
        random = np.random.default_rng(seed)
        x = random.standard_normal((1_000, 12), np.float32)
        y = (x @ random.standard_normal((12, 5))).argmax(1)
        parameters = {
            "in": random.standard_normal((12, 24), np.float32) / 4,
            "out": random.standard_normal((24, 5), np.float32) / 5,
        }
        every = jax.vmap(jax.grad(lambda p, a, b: loss(p, a[None], b[None])), (None, 0, 0))(parameters, x, y)
        flat = np.concatenate([np.asarray(each, np.float64).reshape(len(x), -1) for each in every.values()], 1)
        truth = ((flat - flat.mean(0)) ** 2).sum(1).mean() / (flat.mean(0) ** 2).sum()

        meter = NoiseMeter(always=True, every=1)
        for number in range(STEPS):
            batch = random.integers(0, len(x), size)
            mine = jax.device_put((x[batch], y[batch]), spread)
            _, gradient, norms = step(parameters, *mine, meter.parts)
            if number == 0:
                _, whole, nothing = step(parameters, *mine, 1)
                same &= all(np.allclose(gradient[name], whole[name], atol=1e-6) for name in whole)
                same &= not np.asarray(nothing).any()
                if devices > 1:
                    average, told = mapped(parameters, *mine)
                    same &= all(np.allclose(average[name], whole[name], atol=1e-6) for name in whole)
                    same &= np.allclose(told, norms, rtol=1e-4)
            meter.step(size, norms)
        noise = meter.noise
        assert noise is not None
        off.append(float(np.log(noise.scale / truth) / noise.error))
    return {"off": off, "same": bool(same)}


def on_hosts(rank: int, hosts: int, port: int, leave: str) -> dict[str, Any]:
    """The step in which this host is told to leave."""
    from functools import partial

    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from mlcd_tracker.jax import NoiseMeter, value_and_grad

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", hosts, rank)
    spread = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))

    @partial(jax.jit, static_argnames="parts")
    def step(parameters, x, parts):
        return value_and_grad(lambda p, a: jnp.square(a @ p).mean(), parts)(parameters, x)

    meter, random = NoiseMeter(), np.random.default_rng(0)
    parameters, left, scales = np.ones(8, np.float32), None, []
    for number in range(20_000):
        x = random.standard_normal((8, 8), np.float32)
        mine = jax.make_array_from_process_local_data(spread, np.split(x, hosts)[rank])
        _, _, norms = step(parameters, mine, meter.parts)
        if number == 50 and rank == 0:
            Path(leave).touch()
        scales.append(meter.lr_scale(4))
        if meter.step(8, norms):
            left = number
            break
    jax.distributed.shutdown()
    return {"left": left, "scales": scales}


def run(case: str, *arguments: object, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, case, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> Any:
    out, err = process.communicate(timeout=500)
    assert process.returncode == 0, err
    return json.loads(next(line for line in out.splitlines() if line.startswith("{")))


@pytest.mark.parametrize("devices", [1, 4])
def test_devices_find_the_noise_that_brute_force_finds_and_learn_the_same(devices: int):
    found = answer(run("devices", devices, XLA_FLAGS=f"--xla_force_host_platform_device_count={devices}"))
    assert sum(abs(off) <= 1.645 for off in found["off"]) >= 7, found
    assert max(map(abs, found["off"])) < 5
    assert found["same"]


def test_all_hosts_leave_in_the_same_step_and_scale_the_learning_rate_alike(tmp_path: Path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    leave = str(tmp_path / "leave")
    inside = {"MLCD_LAUNCH": "run-1", "MLCD_LEAVE": leave, "MLCD_LR_RULE": "adascale", "MLCD_BATCH": "8"}
    hosts = [run("hosts", rank, 2, port, leave, MLCD_RANK=str(rank), **inside) for rank in range(2)]
    first, second = map(answer, hosts)
    assert first["left"] is not None
    assert first["left"] >= 50
    assert first == second
    assert all(1 <= scale <= 2 for scale in first["scales"])


if __name__ == "__main__":
    if sys.argv[1] == "devices":
        result = on_devices(int(sys.argv[2]))
    else:
        result = on_hosts(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    print(json.dumps(result), flush=True)
