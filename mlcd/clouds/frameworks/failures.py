"""Diagnoses why a job failed from the end of its output, with advice."""

import re
from dataclasses import dataclass

from mlcd.core.measurement import Outcome

LAST_LINES = 12
"""Lines of a log that are shown with a failure."""
KILLED = (-9, 137)
"""Exit statuses of a killed process, directly or in a shell."""


@dataclass(frozen=True)
class Diagnosis:
    """An outcome, and one line for the user: what happened and what to do."""

    outcome: Outcome
    advice: str


_MEMORY = re.compile(
    r"out of memory|MemoryError|[Cc]an(?:'|no)t allocate memory|not enough memory: you tried to allocate|std::bad_alloc"
    r"|RESOURCE_EXHAUSTED|OOM when"
)
_MODULE = re.compile(r"No module named '?([\w.]+)'?")
_FILE = re.compile(r"can't open file '([^'\n]+)'|No such file or directory: '([^'\n]+)'")
_SHELL_FILE = re.compile(r"(?m)^(?:\S+: )*?(?:line \d+: )?(\S+): No such file or directory$")
_COMMAND = re.compile(r"(?<!\S)(\S+): (?:command )?not found")
_ERROR = re.compile(r"^(?:\[\w+\]:\s*)?((?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt|Exit)\b.*)$", re.MULTILINE)
_LAUNCHER = re.compile(r"(?ms)^E\d{4} [^\n]*torch/distributed/elastic[^\n]*failed \(exitcode: (-?\d+)\).*")
"""torchrun's own message about a failed script; it follows the script's output."""
_PEER = re.compile(r"Connection (?:closed|reset) by peer|Connection refused|Socket closed|Broken pipe|remote worker")
"""Errors of a process whose only problem is that it lost a peer."""


def diagnose(status: int, output: str) -> Diagnosis:
    """Diagnose why a process ended with this status (negative: a signal), from the end of its output."""
    if _MEMORY.search(output):  # before everything else: a node adds this line after all other output
        return Diagnosis(Outcome.OUT_OF_MEMORY, "it ran out of memory")
    if (launcher := _LAUNCHER.search(output)) is not None:
        status, output = int(launcher[1]), output[: launcher.start()]
    errors = [error.strip() for error in _ERROR.findall(output)]
    last = errors[-1] if errors else output
    if (missing := _MODULE.search(last)) is not None:
        module = missing[1].partition(".")[0]
        return Diagnosis(Outcome.FAILED, f"no module named '{module}': add `pip install {module}` to `setup:`")
    if (file := _FILE.search(last) or _SHELL_FILE.search(last)) is not None:
        path = next(group for group in file.groups() if group)
        return Diagnosis(Outcome.FAILED, f"no such file: {path}; paths in `run:` are relative to `workdir:`")
    if status == 127 and (command := _COMMAND.search(output)) is not None:
        return Diagnosis(Outcome.FAILED, f"no such command: {command[1]}; install it in `setup:`")
    if status in KILLED:
        killed = "its process was killed from outside: a lost node, or the system needed memory"
        return Diagnosis(Outcome.PREEMPTED, killed)
    if errors:
        return Diagnosis(Outcome.FAILED, f"the job raised {last}")
    if status < 0:
        return Diagnosis(Outcome.FAILED, f"its process was ended by signal {-status}")
    return Diagnosis(Outcome.FAILED, f"its command ended with exit code {status}")


def blame(status: int, output: str) -> int:
    """A rank for failed processes: the process with the lowest rank caused the others to fail."""
    if (launcher := _LAUNCHER.search(output)) is not None:
        status, output = int(launcher[1]), output[: launcher.start()]
    if status in KILLED:
        return 0
    errors = _ERROR.findall(output)
    return 2 if errors and _PEER.search(errors[-1]) else 1


def last_lines(output: str) -> str:
    """The end of a log, without the lines of the tracker and torchrun's own message."""
    own = _LAUNCHER.sub("", output)
    lines = [line for line in own.splitlines() if line.strip() and "@mlcd " not in line]
    return "\n".join(lines[-LAST_LINES:])
