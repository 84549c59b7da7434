"""Imported last by the fork server: freezes all objects, so that the children's garbage collectors skip them.

A collector writes to the header of each object that it visits, and a written page is copied: without the freeze, each
child would copy most of the 200 MB that all children can share.
"""

import gc

from mlcd.service.workers.trust import keep_memory_private

keep_memory_private()  # inherited by every forked child
gc.collect()
gc.freeze()
