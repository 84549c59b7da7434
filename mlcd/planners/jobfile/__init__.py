"""Read a job file: a SkyPilot task with an additional block, `mlcd:`. The entry point is `read.py`.

Every error is one line that starts with file:line:column. docs/reference/job-file.md lists the keys. This file imports
nothing, because planners build their own blocks from `keys.py`, and `read.py` imports the planners.
"""
