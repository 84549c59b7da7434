"""Read a job file: a SkyPilot task with one more block, `mlcd:`. `read.py` has what to call.

Every mistake is one line that starts with file:line:column. docs/reference/job-file.md lists the keys. Nothing is
imported here: planners build their own blocks of a job file from `keys.py`, and `read.py` imports these blocks.
"""
