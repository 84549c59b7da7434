"""Lists the GPUs of this machine, and reserves them for one launch at a time.

A launch reserves a GPU by binding an abstract Unix socket whose name contains its UUID. Meanwhile no other process of
this machine, whatever its user and state folder, can bind that name. The kernel frees it when the last process that
has the socket ends. The launch's watchdog has it, too: after a crash of MLCD, a GPU is free once the watchdog has ended
the job's processes.
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
"""Timeout of nvidia-smi, which takes seconds if the driver has to be loaded first."""
VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU and its current use, from nvidia-smi. `busy_percent`: None if nvidia-smi does not report it."""

    uuid: str
    name: str
    memory_mib: float
    used_mib: float
    busy_percent: float | None


@dataclass(frozen=True, slots=True)
class UsableGpus:
    """The GPUs that MLCD may use on this machine. `why_none`: the reason if there are none."""

    gpus: tuple[Gpu, ...]
    why_none: str = ""

    @property
    def kinds(self) -> str:
        """'2 x NVIDIA A100-SXM4-80GB, 1 x Tesla T4'."""
        names = [gpu.name for gpu in self.gpus]
        return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))

    def fitting(self, offer: Offer) -> tuple[Gpu, ...]:
        """The GPUs of the kind that an offer needs."""
        return tuple(gpu for gpu in self.gpus if is_kind(gpu.name, offer.accelerator))

    def shortage(self, offer: Offer, nodes: int) -> str | None:
        """What is missing for so many nodes, and what to do; None if there are enough GPUs."""
        wanted, fitting = nodes * offer.accelerators, len(self.fitting(offer))
        if wanted <= fitting:
            return None
        if not self.gpus:
            return f"this machine has no GPU ({self.why_none}); remove the type, or use a machine with GPUs"
        if not fitting:
            known = f"{short_name(self.gpus[0].name)}:{offer.accelerators}"
            return f"this machine has other GPUs ({self.kinds}); use their name, such as {known}"
        needs = f"{nodes} nodes need {wanted}" if nodes > 1 else f"a node needs {wanted}"
        return f"{needs}, and this machine has {self.kinds}; lower the number, or remove the type"


def usable_gpus(environ: Mapping[str, str] = os.environ) -> UsableGpus:
    """The GPUs of this machine; only those in CUDA_VISIBLE_DEVICES if that is set for MLCD itself."""
    try:
        gpus = ask_nvidia_smi()
    except BackendError as error:
        return UsableGpus((), str(error))
    if not gpus:
        return UsableGpus((), "nvidia-smi lists none")
    visible = environ.get(VISIBLE)
    if visible is None:
        return UsableGpus(gpus)
    named = tuple(gpu for i, gpu in enumerate(gpus) if _is_named(visible, i, gpu))
    return UsableGpus(named, "" if named else f"{VISIBLE}='{visible}' names none of its GPUs")


def ask_nvidia_smi() -> tuple[Gpu, ...]:
    """All GPUs of this machine; `BackendError` if nvidia-smi fails."""
    command = [NVIDIA_SMI, f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=ANSWERS_WITHIN_S)
    except FileNotFoundError:
        raise BackendError("nvidia-smi is not installed") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BackendError(f"nvidia-smi does not answer: {error}") from None
    if done.returncode:
        reason = (done.stdout + done.stderr).split("\n")[0].strip()
        raise BackendError(f"nvidia-smi fails: {reason or f'exit code {done.returncode}'}")
    lines = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    return tuple(_gpu(cells) for cells in lines if len(cells) == len(FIELDS.split(",")))


def is_kind(full_name: str, kind: str) -> bool:
    """Whether a GPU with this name of nvidia-smi is of this kind: 'NVIDIA A100-SXM4-80GB' is an A100 and an A100-80GB.

    Whole words are compared, so that A10 is not A100. Some names are written with and without a space: RTX4090.
    """
    if kind.upper() == ANY_GPU:
        return True
    words = _words(full_name)
    known = {"".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1)}
    return all(word in known for word in _words(kind))


def short_name(full_name: str) -> str:
    """The kind to write in a file for a GPU with this name of nvidia-smi: 'A100' for 'NVIDIA A100-SXM4-80GB'."""
    return next((word for word in re.split(r"[\s-]", full_name) if re.search(r"\d", word)), ANY_GPU)


class HeldGpus:
    """Reserves the GPUs of a launch's nodes while the `with` block runs."""

    def __init__(self, configuration: Configuration) -> None:
        """Reserve them; `NothingOrdered` if other launches hold too many of them."""
        offer, nodes = configuration.offer, configuration.nodes
        self._each, self._sockets = offer.accelerators, ExitStack()
        self.gpus: tuple[Gpu, ...] = ()
        self.descriptors: tuple[int, ...] = ()
        if not offer.accelerators:
            return
        usable = usable_gpus()
        if (shortage := usable.shortage(offer, nodes)) is not None:
            raise UserError(f"{offer.instance_type}: {shortage}")
        for gpu in usable.fitting(offer):
            if len(self.gpus) < nodes * offer.accelerators and (held := _hold(gpu)) is not None:
                self._sockets.enter_context(held)
                self.gpus += (gpu,)
                self.descriptors += (held.fileno(),)
        if len(self.gpus) < nodes * offer.accelerators:
            self._sockets.close()
            raise NothingOrdered(f"{configuration}: other launches on this machine hold the GPUs; wait until they end")

    def variables(self, node: int) -> dict[str, str]:
        """The variable with a node's GPUs: their UUIDs, because CUDA may number GPUs differently from nvidia-smi."""
        own = self.gpus[node * self._each : (node + 1) * self._each]
        return {VISIBLE: ",".join(gpu.uuid for gpu in own)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._sockets.close()


def _hold(gpu: Gpu) -> socket.socket | None:
    """The socket that reserves a GPU while it is open; None if another process has it."""
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with suppress(OSError):
        held.bind(f"\0mlcd-{gpu.uuid}")
        return held
    held.close()
    return None


def _gpu(cells: Sequence[str]) -> Gpu:
    uuid, name, memory, used, busy = cells
    return Gpu(uuid, name, _number(memory) or 0.0, _number(used) or 0.0, _number(busy))


def _number(text: str) -> float | None:
    """A number; None for '[N/A]', which GPU partitions and some older GPUs return."""
    try:
        return float(text)
    except ValueError:
        return None


def _is_named(visible: str, index: int, gpu: Gpu) -> bool:
    """Whether CUDA_VISIBLE_DEVICES names a GPU: by its index, or by its UUID or the beginning of it."""
    names = [name.strip() for name in visible.split(",")]
    return any(name == str(index) or (name.startswith("GPU-") and gpu.uuid.startswith(name)) for name in names)


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.lower())
