"""Untrusted input is parsed in a child process with limits on memory and time; see limited.py."""

from mlcd.service.web.reading.child import Limits
from mlcd.service.web.reading.limited import MODEL, PASSES, SPACE, TEXT, in_child_process, passes_limits

__all__ = ["MODEL", "PASSES", "SPACE", "TEXT", "Limits", "in_child_process", "passes_limits"]
