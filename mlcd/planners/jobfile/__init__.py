"""Read a job file: a SkyPilot task with one more block, `mlcd:`.

Every mistake is one line that starts with file:line:column. docs/reference/job-file.md lists the keys.
"""

from mlcd.planners.jobfile.read import load_job, parse_job
from mlcd.planners.jobfile.task import TASK_KEYS

__all__ = ["TASK_KEYS", "load_job", "parse_job"]
