"""Reading a job's progress from its output: the tracker's lines, or a pattern that the job's owner gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite, nan

from mlcd.job import Job
from mlcd.measurement import Noise, Sample

_TRACKED = re.compile(r"@mlcd t=([\d.]+) samples=([\d.e+-]+) saved=([\d.e+-]+)((?: \w+=[\w.+-]+)*)")
_LINE_ENDS = re.compile(r"[\r\n]+")  # a progress bar ends its lines with a carriage return
LONGEST_LINE = 10_000


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
        """The samples in the next piece of output, read at this time; time and work only go forward."""
        *lines, rest = _LINE_ENDS.split(self._rest + output)
        self._rest = rest[-LONGEST_LINE:]
        new: list[Sample] = []
        for line in lines:
            sample = self._read(line, elapsed_s)
            if sample is None or sample.samples < self._last.samples:
                continue
            if new and sample.elapsed_s == self._last.elapsed_s:  # lines that were read at once: the last one counts
                new.pop()
            elif sample.elapsed_s <= self._last.elapsed_s:
                continue
            new.append(sample)
            self._last = sample
        return new

    def _read(self, line: str, elapsed_s: float) -> Sample | None:
        if (tracked := _TRACKED.search(line)) is not None:
            at_s, samples, saved = map(_number, tracked.groups()[:3])
            if at_s is None or samples is None or saved is None:
                return None
            if self._offset_s is None:
                self._offset_s = elapsed_s - at_s
            more = dict(field.split("=", 1) for field in tracked[4].split())
            return Sample(self._offset_s + at_s, samples, saved, _metric(more), _noise(more))
        if self.job.report and (told := re.search(self.job.report, line)) is not None:
            groups = told.groupdict()
            if (samples := _number(groups.get("samples"))) is not None:
                return Sample(elapsed_s, samples)
            if (step := _number(groups.get("step"))) is not None:
                return Sample(elapsed_s, step * (self.job.hints.global_batch or 1))
        return None


def _metric(told: Mapping[str, str]) -> float | None:
    """What the job is judged by; NaN is worth telling."""
    if told.get("metric", "").lower() in ("nan", "inf", "-inf"):
        return nan
    return _number(told.get("metric"))


def _noise(told: Mapping[str, str]) -> Noise | None:
    scale, error = _number(told.get("noise")), _number(told.get("noise_error"))
    if scale is None or error is None or scale <= 0:
        return None
    return Noise(scale, error, told.get("noise_stable") == "1", _number(told.get("gamma")))


def _number(written: str | None) -> float | None:
    """A number as people print it, 12,800 too; None for what is none."""
    try:
        number = float((written or "").replace(",", ""))
    except ValueError:
        return None
    return number if isfinite(number) else None
