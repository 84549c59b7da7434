"""Reads a job's progress from its output: the tracker's lines, or a pattern in the job file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import Protocol

from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Sample
from mlcd.core.pattern import compile_pattern
from mlcd.planners.scale.nouns import Noise

_TRACKED = re.compile(r"@mlcd t=([\d.]+) samples=([\d.e+-]+) saved=([\d.e+-]+)((?: \w+=[\w.+-]+)*)")
_LINE_ENDS = re.compile(r"[\r\n]+")  # a progress bar ends its lines with a carriage return
LONGEST_LINE = 10_000
"""Of a longer line only the last so many characters are parsed."""
REPORTS_OF_A_RESTART = 3
"""So many increasing reports below the last count mean that the count has restarted; fewer may be stray lines."""
PATTERN_RESTARTED = (
    "the samples that it reports start again: if `step` does so in each epoch, add an `epoch` group to `report:`, as "
    "in 'epoch (?P<epoch>\\d+) step (?P<step>\\d+)'; if a validation prints these lines, match only the training's"
)
TRACKER_RESTARTED = (
    "the samples that mlcd_tracker reports start again: the script was started again within one launch, or stepped back"
)


class OutputReader(Protocol):
    """Reads a job's output. `reports`: number of reports so far. `ended`: the end that the job itself has reported."""

    reports: int
    offset_s: float | None
    ended: Ended | None

    def feed(self, output: str, elapsed_s: float) -> list[Sample]:
        """The samples in the next lines, which were written at `elapsed_s`."""


@dataclass
class ProgressReader:
    """Parses output into samples.

    A tracker's line has a timestamp, which is more precise than the time of reading. `offset_s`, the difference of the
    two clocks, comes from the first lines: from the newest of those that are read together, because it waited least.
    `reports` counts all lines with progress.
    """

    job: Job
    reports: int = 0
    offset_s: float | None = None
    ended: Ended | None = None
    """Always None: a training job does not report its own end."""
    _rest: str = ""
    _last: Sample = field(default_factory=lambda: Sample(-1.0, -1.0))
    _behind: list[float] = field(default_factory=list)
    _first_epoch: int | None = None
    _pattern: re.Pattern[str] | None = None

    def __post_init__(self) -> None:
        if self.job.report:
            try:
                self._pattern = compile_pattern(self.job.report)
            except ValueError as error:  # stored before patterns were restricted to RE2
                raise UserError(f"report '{self.job.report}': {error}") from None

    def feed(self, output: str, elapsed_s: float) -> list[Sample]:
        """The samples in the next piece of output, read at `elapsed_s`. Their times and samples never decrease."""
        *lines, rest = _LINE_ENDS.split(self._rest + output)
        self._rest = rest[-LONGEST_LINE:]
        if self.offset_s is None:
            self.offset_s = _offset_s(lines, elapsed_s)
        new: list[Sample] = []
        for line in lines:
            sample = self._read(line[-LONGEST_LINE:], elapsed_s)
            if sample is None:
                continue
            if self._is_behind(sample):
                new += self._restarted(line, elapsed_s)
                continue
            if new and sample.elapsed_s == self._last.elapsed_s:  # lines read at the same time: the last one counts
                new.pop()
            elif sample.elapsed_s <= self._last.elapsed_s:
                continue
            new.append(sample)
            self._last = sample
        return new

    def _is_behind(self, sample: Sample) -> bool:
        """Whether the report is below an earlier one."""
        self.reports += 1
        if sample.samples >= self._last.samples:
            self._behind.clear()
            return False
        if self._behind and sample.samples <= self._behind[-1]:
            self._behind.clear()
        self._behind.append(sample.samples)
        return True

    def _restarted(self, line: str, elapsed_s: float) -> list[Sample]:
        """Report a restarted count once, as a sample without progress."""
        if len(self._behind) != REPORTS_OF_A_RESTART:
            return []
        remark = TRACKER_RESTARTED if _TRACKED.search(line[-LONGEST_LINE:]) else PATTERN_RESTARTED
        self._last = replace(self._last, elapsed_s=max(elapsed_s, self._last.elapsed_s + 1e-3))
        return [replace(self._last, remark=remark)]

    def _read(self, line: str, elapsed_s: float) -> Sample | None:
        if (tracked := _TRACKED.search(line)) is not None:
            at_s, samples, saved = map(_number, tracked.groups()[:3])
            if at_s is None or samples is None or saved is None or self.offset_s is None:
                return None
            more = dict(field.split("=", 1) for field in tracked[4].split())
            memory = _number(more.get("memory"))
            return Sample(self.offset_s + at_s, samples, saved, _metric(more), _noise(more), memory=memory)
        if self._pattern is not None and (match := self._pattern.search(line)) is not None:
            numbers = {name: _number(text) for name, text in match.groupdict().items()}
            done = self._total(numbers) if "epoch" in numbers else self._in_line(numbers)
            return Sample(elapsed_s, done) if done is not None else None
        return None

    def _in_line(self, numbers: Mapping[str, float | None]) -> float | None:
        """The samples in a line."""
        samples, step = numbers.get("samples"), numbers.get("step")
        return samples if samples is not None or step is None else step * (self.job.hints.global_batch or 1)

    def _total(self, numbers: Mapping[str, float | None]) -> float | None:
        """The samples since the first epoch, for a line whose count restarts in each epoch.

        An epoch has the job's dataset, or `steps` batches. The first epoch is 0 or 1.
        """
        epoch, step, steps = numbers["epoch"], numbers.get("step"), numbers.get("steps")
        whole, counted = self.job.dataset_samples, self._in_line(numbers)
        if whole is None and steps is not None:
            whole = steps * (self.job.hints.global_batch or 1)
        if epoch is None or whole is None:
            return None
        if "step" not in numbers and "samples" not in numbers:
            return epoch * whole  # completed epochs, as in 'epoch 2.53'
        if counted is None:
            return None
        if self._first_epoch is None:
            self._first_epoch = 0 if epoch < 1 else 1
        done = whole * step / steps if step is not None and steps else counted
        return (epoch - self._first_epoch) * whole + min(done, whole)


def _offset_s(lines: list[str], elapsed_s: float) -> float | None:
    """The offset to add to a tracker's time to get the launch's time; None if no line is a tracker's.

    A tracker starts after its launch, so the offset is never negative.
    """
    tracked = (_TRACKED.search(line[-LONGEST_LINE:]) for line in lines)
    times = [at_s for each in tracked if each is not None and (at_s := _number(each[1])) is not None]
    return max(0.0, elapsed_s - max(times)) if times else None


def saved_in(line: str) -> float:
    """The samples that a tracker's line reports as saved; 0 for any other line."""
    tracked = _TRACKED.search(line[-LONGEST_LINE:])
    return (_number(tracked[3]) or 0.0) if tracked is not None else 0.0


def _metric(fields: Mapping[str, str]) -> float | None:
    """The job's metric; infinite values become NaN."""
    if fields.get("metric", "").lower() in ("nan", "inf", "-inf"):
        return nan
    return _number(fields.get("metric"))


def _noise(fields: Mapping[str, str]) -> Noise | None:
    scale, error = _number(fields.get("noise")), _number(fields.get("noise_error"))
    if scale is None or error is None or scale <= 0:
        return None
    return Noise(scale, error, fields.get("noise_stable") == "1", _number(fields.get("gamma")))


def _number(text: str | None) -> float | None:
    """Parse a printed number, such as 12,800; None if it is not a finite number."""
    try:
        number = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return number if isfinite(number) else None
