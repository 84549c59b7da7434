"""The GPUs of this machine: which there are, and which of them a launch has to itself.

A launch holds each of its GPUs by binding a name in the kernel, an abstract Unix socket. No other process of this
machine can bind that name meanwhile, whichever its user and its state folder, and the kernel frees it when the last
process that has the socket ends. The launch's watchdog has it too: after a crash of MLCD, a GPU is free once the
watchdog has ended the job's processes.
"""

import os
import re
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from mlcd.clouds.node_types import ANY_GPU
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.errors import BackendError, NothingOrdered, UserError

NVIDIA_SMI = "nvidia-smi"
FIELDS = "uuid,name,memory.total,memory.used,utilization.gpu"
ANSWERS_WITHIN_S = 30.0
"""Timeout of nvidia-smi, which takes seconds where the driver has to be loaded first."""
VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as nvidia-smi tells of it now. `busy_percent`: None where it does not tell."""

    uuid: str
    name: str
    memory_mib: float
    used_mib: float
    busy_percent: float | None


@dataclass(frozen=True, slots=True)
class Found:
    """The GPUs that MLCD may use here; `why_none`, if there is none."""

    gpus: tuple[Gpu, ...]
    why_none: str = ""

    @property
    def kinds(self) -> str:
        """'2 x NVIDIA A100-SXM4-80GB, 1 x Tesla T4'."""
        names = [gpu.name for gpu in self.gpus]
        return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))

    def fitting(self, offer: Offer) -> tuple[Gpu, ...]:
        """Those of the kind that an offer names."""
        return tuple(gpu for gpu in self.gpus if is_kind(gpu.name, offer.accelerator))

    def lacks(self, offer: Offer, nodes: int) -> str | None:
        """What is missing for so many nodes, and what to do; None if there are enough GPUs."""
        wanted, fitting = nodes * offer.accelerators, len(self.fitting(offer))
        if wanted <= fitting:
            return None
        if not self.gpus:
            return f"this machine has no GPU for it ({self.why_none}); leave the type out, or go to a machine with GPUs"
        if not fitting:
            known = f"{short_name(self.gpus[0].name)}:{offer.accelerators}"
            return f"this machine has other GPUs ({self.kinds}); name theirs, such as {known}"
        needs = f"{nodes} nodes need {wanted}" if nodes > 1 else f"a node needs {wanted}"
        return f"{needs}, and this machine has {self.kinds}; lower the number, or leave the type out"


def found_here(environ: Mapping[str, str] = os.environ) -> Found:
    """The GPUs of this machine; of these, those in CUDA_VISIBLE_DEVICES where it is set for MLCD itself."""
    try:
        gpus = ask_nvidia_smi()
    except BackendError as error:
        return Found((), str(error))
    if not gpus:
        return Found((), "nvidia-smi lists none")
    visible = environ.get(VISIBLE)
    if visible is None:
        return Found(gpus)
    named = tuple(gpu for i, gpu in enumerate(gpus) if _is_named(visible, i, gpu))
    return Found(named, "" if named else f"{VISIBLE}='{visible}' names none of its GPUs")


def ask_nvidia_smi() -> tuple[Gpu, ...]:
    """All GPUs of this machine; `BackendError` if nvidia-smi does not tell."""
    command = [NVIDIA_SMI, f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=ANSWERS_WITHIN_S)
    except FileNotFoundError:
        raise BackendError("nvidia-smi is not installed") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BackendError(f"nvidia-smi does not answer: {error}") from None
    if done.returncode:
        said = (done.stdout + done.stderr).split("\n")[0].strip()
        raise BackendError(f"nvidia-smi fails: {said or f'exit code {done.returncode}'}")
    lines = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    return tuple(_gpu(cells) for cells in lines if len(cells) == len(FIELDS.split(",")))


def is_kind(told: str, written: str) -> bool:
    """Whether nvidia-smi's name is of the kind that a file names: 'NVIDIA A100-SXM4-80GB' is A100 and A100-80GB.

    Words are compared whole, so that A10 is not A100. Some names are written with and without a space: RTX4090.
    """
    if written.upper() == ANY_GPU:
        return True
    words = _words(told)
    known = {"".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1)}
    return all(word in known for word in _words(written))


def short_name(told: str) -> str:
    """The name to write in a file for a GPU of nvidia-smi's name: 'A100' for 'NVIDIA A100-SXM4-80GB'."""
    return next((word for word in re.split(r"[\s-]", told) if re.search(r"\d", word)), ANY_GPU)


class HeldGpus:
    """The GPUs of a launch's nodes, which no other launch gets while the `with` block runs."""

    def __init__(self, configuration: Configuration) -> None:
        """Take them; `NothingOrdered` if other launches hold too many of them now."""
        offer, nodes = configuration.offer, configuration.nodes
        self._each, self._sockets = offer.accelerators, ExitStack()
        self.gpus: tuple[Gpu, ...] = ()
        self.descriptors: tuple[int, ...] = ()
        if not offer.accelerators:
            return
        found = found_here()
        if (lacks := found.lacks(offer, nodes)) is not None:
            raise UserError(f"{offer.instance_type}: {lacks}")
        for gpu in found.fitting(offer):
            if len(self.gpus) < nodes * offer.accelerators and (held := _hold(gpu)) is not None:
                self._sockets.enter_context(held)
                self.gpus += (gpu,)
                self.descriptors += (held.fileno(),)
        if len(self.gpus) < nodes * offer.accelerators:
            self._sockets.close()
            raise NothingOrdered(f"{configuration}: other launches on this machine hold the GPUs; wait until they end")

    def variables(self, node: int) -> dict[str, str]:
        """What tells a node's processes their GPUs: by UUID, as CUDA may number them unlike nvidia-smi."""
        own = self.gpus[node * self._each : (node + 1) * self._each]
        return {VISIBLE: ",".join(gpu.uuid for gpu in own)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._sockets.close()


def _hold(gpu: Gpu) -> socket.socket | None:
    """The socket that holds a GPU while it is open; None if another process has it."""
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with suppress(OSError):
        held.bind(f"\0mlcd-{gpu.uuid}")
        return held
    held.close()
    return None


def _gpu(cells: Sequence[str]) -> Gpu:
    uuid, name, memory, used, busy = cells
    return Gpu(uuid, name, _number(memory) or 0.0, _number(used) or 0.0, _number(busy))


def _number(written: str) -> float | None:
    """A number; None for '[N/A]', as parts of a GPU and some older ones answer."""
    try:
        return float(written)
    except ValueError:
        return None


def _is_named(visible: str, index: int, gpu: Gpu) -> bool:
    """Whether CUDA_VISIBLE_DEVICES names a GPU: by its number, or by its UUID, of which the beginning is enough."""
    names = [name.strip() for name in visible.split(",")]
    return any(name == str(index) or (name.startswith("GPU-") and gpu.uuid.startswith(name)) for name in names)


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.lower())
