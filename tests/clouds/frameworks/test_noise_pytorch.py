"""The PyTorch noise meter, against a brute-force computation from per-sample gradients; one process and several.

Several processes run this same file as a script: it imports PyTorch once, and forks so many workers as are asked for,
each over all the cases below; they leave what they found in files.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache, partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install -e '.[frameworks]'")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import mlcd_tracker  # noqa: E402
from mlcd_tracker.noise import Noise  # noqa: E402
from mlcd_tracker.pytorch import NoiseMeter  # noqa: E402
from mlcd_tracker.pytorch_workers import even_batch  # noqa: E402

# At each change: test_noise_scale.py, and `mlcd scale` in test_examples.py.
pytestmark = [pytest.mark.live, pytest.mark.night]

ROOT = Path(mlcd_tracker.__file__).parents[1]
SAMPLES, SEEDS, STEPS = 1_000, 10, 120
STEPS_TOGETHER = 60
"""Of several workers, who wait for each other in every one of them."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The network is too small for more, and other tests run beside this one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Problem:
    """A small network that does not learn, so that its noise is known; batches are drawn with replacement."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.net = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 5))
        self.x = torch.randn(SAMPLES, 12)
        self.y = (self.x @ torch.randn(12, 5)).argmax(1)
        self._draw = torch.Generator().manual_seed(seed)

    def batches(self, size: int, steps: int = STEPS) -> Iterator[torch.Tensor]:
        for _ in range(steps):
            yield torch.randint(SAMPLES, (size,), generator=self._draw)

    def loss(self, net: nn.Module, mine: torch.Tensor) -> torch.Tensor:
        return cross_entropy(net(self.x[mine]), self.y[mine])

    def truth(self) -> float:
        """tr / |G|^2 from every sample's own gradient."""

        def loss(parameters: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return cross_entropy(torch.func.functional_call(self.net, parameters, (x[None],)), y[None])

        parameters = {name: value.detach() for name, value in self.net.named_parameters()}
        every = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(parameters, self.x, self.y)
        flat = torch.cat([each.flatten(1) for each in every.values()], 1).double()
        return float((flat - flat.mean(0)).square().sum(1).mean() / flat.mean(0).square().sum())


def errors_off(noise: Noise | None, truth: float) -> float:
    assert noise is not None
    return math.log(noise.scale / truth) / noise.error


def covered(off: list[float]) -> bool:
    """90 % intervals miss 4 of 10 times by chance in 1.3 % of all cases."""
    return sum(abs(each) <= 1.645 for each in off) >= 0.7 * len(off) and max(map(abs, off)) < 5


# One process


def in_halves(problem: Problem, meter: NoiseMeter, batch: torch.Tensor) -> None:
    for part, share in meter.parts(batch):
        (share * problem.loss(problem.net, part)).backward()


def in_micro_batches(problem: Problem, meter: NoiseMeter, batch: torch.Tensor) -> None:
    for part in batch.split(len(batch) // 4):
        problem.loss(problem.net, part).backward()  # their sum: the scale of a gradient does not matter


def at_once(problem: Problem, meter: NoiseMeter, batch: torch.Tensor) -> None:
    problem.loss(problem.net, batch).backward()


@pytest.mark.parametrize(
    ("backward", "size"), [(in_halves, 32), (in_halves, 33), (in_micro_batches, 32), (at_once, 32)]
)
def test_one_worker_finds_the_noise_that_brute_force_finds(backward: Callable[..., None], size: int):
    off = []
    for seed in range(SEEDS):
        problem = Problem(seed)
        meter = NoiseMeter(problem.net, always=True, every=1)
        for batch in problem.batches(size):
            problem.net.zero_grad()
            backward(problem, meter, batch)
            meter.step(size)
        off.append(errors_off(meter.noise, problem.truth()))
    assert covered(off), off


def test_consecutive_steps_read_high_where_the_network_moves():
    """What the fallback costs: a network that learns changes its gradient between the two steps."""
    halves, steps = Problem(0), Problem(0)
    found = []
    for problem, backward in ((halves, in_halves), (steps, at_once)):
        meter = NoiseMeter(problem.net, always=True, every=1)
        optimizer = torch.optim.SGD(problem.net.parameters(), 1.0)
        for batch in problem.batches(500, 60):
            optimizer.zero_grad()
            backward(problem, meter, batch)
            optimizer.step()
            meter.step(500)
        assert meter.noise is not None
        found.append(meter.noise.scale)
    assert found[1] > found[0]


@pytest.mark.parametrize("size", [1, 2, 7, 32])
def test_a_batch_in_parts_teaches_what_the_whole_batch_teaches(size: int):
    problem = Problem(1)
    meter = NoiseMeter(problem.net, always=True, every=1)
    for batch in problem.batches(size, 3):
        problem.net.zero_grad()
        problem.loss(problem.net, batch).backward()
        whole = [parameter.grad.clone() for parameter in problem.net.parameters()]
        meter.step(size)
        problem.net.zero_grad()
        in_halves(problem, meter, batch)
        for mine, other in zip(whole, problem.net.parameters(), strict=True):
            torch.testing.assert_close(mine, other.grad)
        meter.step(size)


def test_parts_cut_whatever_a_loader_yields():
    meter = NoiseMeter(nn.Linear(2, 2), always=True, every=1)
    x, y = torch.arange(5), torch.arange(5) * 10
    for batch in ((x, y), [x, y], {"x": x, "y": y}):
        parts = [list(part.values()) if isinstance(part, dict) else list(part) for part, _ in meter.parts(batch)]
        assert [[values.tolist() for values in part] for part in parts] == [
            [[0, 1], [0, 10]],
            [[2, 3, 4], [20, 30, 40]],
        ]
        assert sum(share for _, share in meter.parts(batch)) == 1


def test_a_scaler_is_taken_out_and_a_step_that_overflows_left_out():
    found = []
    for scaled in (False, True):
        problem = Problem(2)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=20, enabled=scaled)
        meter = NoiseMeter(problem.net, scaler=scaler, always=True, every=1)
        optimizer = torch.optim.SGD(problem.net.parameters(), 0.0)
        for step, batch in enumerate(problem.batches(32, 100)):
            optimizer.zero_grad()
            for part, share in meter.parts(batch):
                scaler.scale(share * problem.loss(problem.net, part) * (math.inf if step == 50 else 1)).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(problem.net.parameters(), 0.01)  # what was measured is not what was clipped
            if scaled:  # otherwise nobody keeps what is infinite from the network
                scaler.step(optimizer)
                scaler.update()
            meter.step(32)
        assert meter._estimate.count == 99
        found.append(meter.noise)
    assert found[0] is not None
    assert found[1] is not None
    assert found[1].scale == pytest.approx(found[0].scale, rel=1e-3)
    assert found[1].error == pytest.approx(found[0].error, rel=1e-2)


def test_outside_mlcd_nothing_is_touched(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mlcd_tracker, "_tracker", mlcd_tracker.Tracker({}))
    net = nn.Linear(2, 2)
    meter = NoiseMeter(net)
    batch = torch.ones(4, 2)
    assert [(part is batch, share) for part, share in meter.parts(batch)] == [(True, 1.0)]
    net(batch).sum().backward()
    assert meter.step(4) is False
    assert meter.noise is None
    assert meter.lr_scale(64) == 1.0
    assert not any(parameter._backward_hooks for parameter in net.parameters())


def test_hooks_are_there_only_while_it_measures():
    net = nn.Linear(2, 2)
    meter = NoiseMeter(net, always=True, every=10)
    hooked = []
    for _ in range(40):
        hooked.append(bool(net.weight._backward_hooks))
        for part, share in meter.parts(torch.ones(4, 2)):
            (share * net(part).sum()).backward()
        meter.step(4)
    assert sum(hooked) == 4


@pytest.mark.parametrize(("samples", "workers"), [(12, 4), (13, 4), (15, 4), (7, 3)])
def test_uneven_shares_average_like_a_smaller_batch(samples: int, workers: int):
    shares = [len(range(rank, samples, workers)) for rank in range(workers)]
    assert even_batch(samples, workers) == pytest.approx(workers**2 / sum(1 / share for share in shares))
    assert even_batch(samples, workers) <= samples


# Several processes


def parallel(problem: Problem, **options: Any) -> DistributedDataParallel:
    return DistributedDataParallel(problem.net, **{"bucket_cap_mb": 0.001, **options})  # several buckets


def measure(
    problem: Problem,
    size: int,
    *,
    micro: int = 1,
    autocast: bool = False,
    scaled: bool = False,
    compressed: bool = False,
    **options: Any,
) -> NoiseMeter:
    """The meter after steps that teach nothing."""
    rank, workers = dist.get_rank(), dist.get_world_size()
    net = parallel(problem, **options)
    if compressed:
        net.register_comm_hook(None, fp16_compress_hook)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=20, enabled=scaled)
    meter = NoiseMeter(net, scaler=scaler, always=True, every=1)
    optimizer = torch.optim.SGD(net.parameters(), 0.0)
    for batch in problem.batches(size, STEPS_TOGETHER):
        optimizer.zero_grad()
        pieces = batch[rank::workers].chunk(micro)
        for i, piece in enumerate(pieces):
            with net.no_sync() if i + 1 < len(pieces) else nullcontext():
                with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                    loss = problem.loss(net, piece) / len(pieces)
                scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        meter.step(size)
    return meter


def coverage(extra: int) -> list[float]:
    size = 8 * dist.get_world_size() + extra
    found = []
    for seed in range(SEEDS):
        problem = Problem(seed)
        meter = measure(problem, size, bucket_cap_mb=25)
        found.append(errors_off(meter.noise, problem.truth()) if dist.get_rank() == 0 else 0.0)
    return found


def variants() -> dict[str, float]:
    size = 8 * dist.get_world_size()
    cases: dict[str, dict[str, Any]] = {
        "plain": {},
        "accumulated": {"micro": 4},
        "autocast": {"autocast": True},
        "compressed": {"compressed": True},
        "scaled": {"scaled": True},
        "views": {"gradient_as_bucket_view": True},
        "static": {"static_graph": True},
        "unused": {"find_unused_parameters": True},
    }
    found = {}
    for name, options in cases.items():
        noise = measure(Problem(3), size, **options).noise
        found[name] = noise.scale if noise is not None else 0.0
    return found


def equality() -> list[bool]:
    """Whether a network learns the same to the last bit with the meter as without."""
    rank, workers = dist.get_rank(), dist.get_world_size()
    found = []
    for views in (False, True):
        nets = []
        for metered in (False, True):
            problem = Problem(4)
            net = parallel(problem, gradient_as_bucket_view=views)
            meter = NoiseMeter(net, always=True, every=2) if metered else None
            optimizer = torch.optim.Adam(net.parameters(), 1e-2)
            for batch in problem.batches(8 * workers, 20):
                optimizer.zero_grad()
                problem.loss(net, batch[rank::workers]).backward()
                optimizer.step()
                if meter is not None:
                    meter.step(8 * workers)
            nets.append(problem.net)
        found.append(all(map(torch.equal, nets[0].parameters(), nets[1].parameters())))
    return found


def leaving(folder: Path) -> dict[str, Any]:
    """The step in which this worker is told to leave, and its factor on the learning rate then."""
    rank, workers = dist.get_rank(), dist.get_world_size()
    problem = Problem(5)
    net = parallel(problem)
    meter, flag = NoiseMeter(net), folder / "leave"
    scales, size = [], 8 * workers
    for step, batch in enumerate(problem.batches(size, 100_000)):
        problem.loss(net, batch[rank::workers]).backward()
        if step == 200 and rank == 0:
            flag.touch()
        scales.append(meter.lr_scale(8))
        if meter.step(size):
            return {"left": step, "scales": scales}
        net.zero_grad()
    return {"left": None, "scales": scales}


def as_a_worker(rank: int, workers: int, folder: Path) -> None:
    torch.set_num_threads(1)
    os.environ.update(
        MLCD_LAUNCH="run-1",
        MLCD_RANK=str(rank),
        MLCD_LEAVE=str(folder / "leave"),
        MLCD_LR_RULE="adascale",
        MLCD_BATCH=str(8 * workers),
    )
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=workers)
    cases: dict[str, Callable[[], Any]] = {
        "even": partial(coverage, 0),
        "uneven": partial(coverage, 3),
        "variants": variants,
        "equal": equality,
        "leaving": partial(leaving, folder),
    }
    found = {name: cases[name]() for name in CASES[workers]}
    (folder / f"{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


def as_workers(workers: int, folder: Path) -> None:
    """So many workers; if one fails, the others would wait for it."""
    folder.mkdir()
    fork = multiprocessing.get_context("fork")
    members = [fork.Process(target=as_a_worker, args=(rank, workers, folder)) for rank in range(workers)]
    for member in members:
        member.start()
    while alive := [member.sentinel for member in members if member.exitcode is None]:
        wait(alive)
        if any(member.exitcode for member in members):
            for member in members:
                member.kill()
            sys.exit(f"of {workers} workers, some have failed")


CASES = {2: ("uneven", "variants", "equal", "leaving"), 3: ("equal", "leaving"), 4: ("even", "leaving")}
"""By the number of workers. Three are here for their thirds: no power of two divides by them."""


Found = Callable[[int], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What each of so many workers found."""
    folder = tmp_path_factory.mktemp("noise")

    @cache
    def by(workers: int) -> list[dict[str, Any]]:
        command = [sys.executable, "-W", "error", __file__, str(folder / str(workers)), str(workers)]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=500, check=False)
        assert done.returncode == 0, done.stdout[-2_000:] + done.stderr
        return [json.loads((folder / f"{workers}/{rank}.json").read_text()) for rank in range(workers)]

    return by


@pytest.mark.night  # at each change: one worker, and `mlcd scale` on two in examples/
@pytest.mark.parametrize(("workers", "shares"), [(2, "uneven"), (4, "even")])
def test_workers_find_the_noise_that_brute_force_finds(found: Found, workers: int, shares: str):
    off = found(workers)[0][shares]
    assert covered(off), off


@pytest.mark.night  # at each change: one worker, and `mlcd scale` on two in examples/
@pytest.mark.parametrize("case", ["accumulated", "scaled", "views", "static", "unused"])
def test_the_noise_is_the_same_however_a_gradient_comes_about(found: Found, case: str):
    variants = found(2)[0]["variants"]
    assert variants[case] == pytest.approx(variants["plain"], rel=1e-3)


@pytest.mark.night  # at each change: one worker, and `mlcd scale` on two in examples/
@pytest.mark.parametrize("case", ["autocast", "compressed"])
def test_lower_precision_reads_the_same_up_to_its_own_rounding(found: Found, case: str):
    """Also where a communication hook of the script's own averages."""
    variants = found(2)[0]["variants"]
    assert variants[case] == pytest.approx(variants["plain"], rel=0.1)


@pytest.mark.night  # at each change: one worker, and `mlcd scale` on two in examples/
@pytest.mark.parametrize("workers", [2, 3])
def test_the_meter_changes_no_bit_of_what_is_learned(found: Found, workers: int):
    assert all(worker["equal"] == [True, True] for worker in found(workers))


@pytest.mark.night  # at each change: one worker, and `mlcd scale` on two in examples/
@pytest.mark.parametrize("workers", [2, 3, 4])
def test_all_workers_exit_in_the_same_step(found: Found, workers: int):
    steps = {worker["leaving"]["left"] for worker in found(workers)}
    assert len(steps) == 1
    assert None not in steps
    assert min(steps) >= 200


@pytest.mark.night  # at each change: one worker, and `mlcd scale` on two in examples/
@pytest.mark.parametrize("workers", [2, 3, 4])
def test_all_workers_scale_the_learning_rate_alike_within_adascales_bounds(found: Found, workers: int):
    scales = [worker["leaving"]["scales"] for worker in found(workers)]
    assert all(each == scales[0] for each in scales)
    assert scales[0][0] == 1.0
    assert all(1 <= scale <= workers for scale in scales[0])
    assert scales[0][-1] > 1


if __name__ == "__main__":
    import torch._dynamo  # as DistributedDataParallel would, in every worker

    as_workers(int(sys.argv[2]), Path(sys.argv[1]))
