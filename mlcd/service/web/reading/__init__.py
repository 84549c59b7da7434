"""What strangers send is read in a process of its own, with limits on memory and time; see limited.py."""

from mlcd.service.web.reading.child import Limits
from mlcd.service.web.reading.limited import MODEL, PASSES, SPACE, TEXT, in_a_child, passes_limits

__all__ = ["MODEL", "PASSES", "SPACE", "TEXT", "Limits", "in_a_child", "passes_limits"]
