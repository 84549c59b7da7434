"""Who is told what a running job reports."""

from __future__ import annotations

from collections.abc import Callable

from mlcd.core.backend import Launch
from mlcd.core.job import Job
from mlcd.core.measurement import Sample

Progress = Callable[[Job, Launch, Sample], object]
