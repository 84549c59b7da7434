"""Diagnose an engine that ended unexpectedly: find the line of its output that states the cause."""

from __future__ import annotations

import re

from mlcd.clouds.frameworks import diagnose
from mlcd.clouds.frameworks.failures import KILLED, last_lines
from mlcd.core.measurement import Ended, Outcome

PREFIX = re.compile(r"^(?:\([\w. =-]+\)\s*)*(?:(?:INFO|WARNING|ERROR|CRITICAL)\b[^\]]*\]\s*)?")
"""Process and time in front of an engine's log lines; removed, since they differ from start to start."""
ERROR = re.compile(r"^((?:[\w.]+\.)?\w*(?:Error|Exception)\b: .*|error: .*|.*: error: .*)$", re.MULTILINE)
WRAPPED = re.compile(r"Engine core initialization failed|Engine core proc|See root cause above|Failed core proc", re.I)
"""Errors that only report that something else failed."""
NO_MEMORY = re.compile(
    r"out of memory|No available memory for the cache blocks|allocation is less than requested memory"
    r"|larger than the available KV cache memory|max seq len .* is larger than the maximum number of tokens"
    r"|[Nn]ot enough memory|failed to allocate|Free memory on device .* is less than desired",
)


def crashed(now_s: float, status: int, output: str) -> Ended:
    """Explain why an engine ended, from its exit status and the end of its output."""
    text = "\n".join(PREFIX.sub("", line).rstrip() for line in output.splitlines())
    log = last_lines(text)
    why = _cause(text) or f"it ended with status {status}" + ("" if log else ", without any output")
    if NO_MEMORY.search(text) or diagnose(status, text).outcome is Outcome.OUT_OF_MEMORY:
        return Ended(now_s, Outcome.OUT_OF_MEMORY, why, log)
    if status in KILLED:
        killed = "the engine was killed from outside; systems do that when they run out of memory"
        return Ended(now_s, Outcome.OUT_OF_MEMORY, killed, log)
    return Ended(now_s, Outcome.FAILED, f"the engine crashed: {why}", log)


def _cause(text: str) -> str:
    """The root error, shortened to one line; the last line if there is no error."""
    errors = [error.strip() for error in ERROR.findall(text) if not WRAPPED.search(error)]
    lines = text.split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return " ".join((errors[-1] if errors else last).split())[:300]
