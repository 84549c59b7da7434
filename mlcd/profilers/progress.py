"""Who is told what a running job reports."""

from __future__ import annotations

from collections.abc import Callable

from mlcd.backend import Launch
from mlcd.job import Job
from mlcd.measurement import Sample

Progress = Callable[[Job, Launch, Sample], object]
