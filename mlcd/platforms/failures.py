"""What the end of a job's output says about why it failed, and what to do about it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlcd.measurement import Outcome

LAST_LINES = 12
"""Of a log, shown with a failure."""
KILLED = (-9, 137)
"""How a process ends that was killed from outside, by itself or inside a shell."""


@dataclass(frozen=True)
class Diagnosis:
    """An outcome, and one line for the user: what happened, what to do."""

    outcome: Outcome
    advice: str


_MEMORY = re.compile(
    r"out of memory|MemoryError|can't allocate memory|Cannot allocate memory|std::bad_alloc|RESOURCE_EXHAUSTED|OOM when"
)
_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_FILE = re.compile(r"(?:can't open file|No such file or directory:?) '?([^'\n]+)'?")
_COMMAND = re.compile(r"(\S+): (?:command )?not found")
_LAST_ERROR = re.compile(r"^(?:\[\w+\]:\s*)?((?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt|Exit)\b.*)$", re.MULTILINE)


def diagnose(status: int, output: str) -> Diagnosis:
    """Why a process ended with this status (negative: by a signal), from what it wrote last."""
    if _MEMORY.search(output):
        return Diagnosis(Outcome.OUT_OF_MEMORY, "it ran out of memory")
    if (missing := _MODULE.search(output)) is not None:
        module = missing[1]
        return Diagnosis(Outcome.FAILED, f"no module named '{module}': add `pip install {module}` to `setup:`")
    if (file := _FILE.search(output)) is not None:
        return Diagnosis(Outcome.FAILED, f"no such file: {file[1].strip()}; paths in `run:` are relative to `workdir:`")
    if status == 127 and (command := _COMMAND.search(output)) is not None:
        return Diagnosis(Outcome.FAILED, f"no such command: {command[1].rstrip(':')}; install it in `setup:`")
    errors = _LAST_ERROR.findall(output)
    if errors:
        return Diagnosis(Outcome.FAILED, f"the job raised {errors[-1].strip()}")
    if status in KILLED:
        return Diagnosis(
            Outcome.PREEMPTED, "its process was killed from outside: a lost node, or the system's own need"
        )
    if status < 0:
        return Diagnosis(Outcome.FAILED, f"its process was ended by signal {-status}")
    return Diagnosis(Outcome.FAILED, f"its command ended with exit code {status}")


def last_lines(output: str) -> str:
    """The end of a log, without the tracker's own lines."""
    lines = [line for line in output.splitlines() if line.strip() and "@mlcd " not in line]
    return "\n".join(lines[-LAST_LINES:])
