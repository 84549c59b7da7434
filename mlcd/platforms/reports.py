"""Reading a job's progress from its output: the tracker's lines, or a pattern that the job's owner gives."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mlcd.job import Job
from mlcd.measurement import Sample

_TRACKED = re.compile(r"@mlcd t=([\d.]+) samples=([\d.e+]+) saved=([\d.e+]+)")


@dataclass
class Reader:
    """Turns output into samples, as it comes.

    A tracker's line carries its own time, which is exact where the moment of reading is not; the first one says
    how that time is to be told on our clock.
    """

    job: Job
    _rest: str = ""
    _offset_s: float | None = None
    _last: Sample = field(default_factory=lambda: Sample(-1.0, -1.0))

    def feed(self, output: str, elapsed_s: float) -> list[Sample]:
        """The samples in the next piece of output, read at this time."""
        *lines, self._rest = (self._rest + output).splitlines(keepends=True) or [""]
        if self._rest.endswith(("\n", "\r")):
            lines, self._rest = [*lines, self._rest], ""
        found = [sample for line in lines if (sample := self._read(line, elapsed_s)) is not None]
        return [sample for sample in found if self._goes_on(sample)]

    def _read(self, line: str, elapsed_s: float) -> Sample | None:
        if (tracked := _TRACKED.search(line)) is not None:
            at_s, samples, saved = map(float, tracked.groups())
            if self._offset_s is None:
                self._offset_s = elapsed_s - at_s
            return Sample(self._offset_s + at_s, samples, saved)
        if self.job.report and (told := re.search(self.job.report, line)) is not None:
            groups = told.groupdict()
            if groups.get("samples"):
                return Sample(elapsed_s, float(groups["samples"]))
            return Sample(elapsed_s, float(groups["step"]) * (self.job.hints.global_batch or 1))
        return None

    def _goes_on(self, sample: Sample) -> bool:
        """Whether it says anything new; time and work only go forward."""
        new = sample.elapsed_s > self._last.elapsed_s and sample.samples >= self._last.samples
        if new:
            self._last = sample
        return new
