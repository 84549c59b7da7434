"""The last thing that the fork server imports: what is there by now is left alone by every child's garbage collector.

A collector that looks at an object writes beside it, and a page that is written to is copied: of the 200 MB that
all children could share, each would copy most.
"""

from __future__ import annotations

import gc

from mlcd.service.workers.trust import keep_memory_private

keep_memory_private()  # and so of every child: a fork keeps it
gc.collect()
gc.freeze()
