"""The events of a trial on another machine, as lines of its output: `@mlcd trial JSON`.

A long event is cut into pieces, all but the last one marked `@mlcd trial+`: a log passes on lines of a limited length.
"""

from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from mlcd.core.measurement import Ended, Event, Sample
from mlcd.planners.serve.nouns import Window

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
PIECE = 8_000
MORE, LAST = "@mlcd trial+ ", "@mlcd trial "
MICROSECONDS = 6
"""Digits of a latency."""


def lines_of(event: Event) -> list[str]:
    """An event as lines."""
    if isinstance(event, Sample) and isinstance(event.evidence, Window):
        latencies_s = tuple(round(each, MICROSECONDS) for each in event.evidence.latencies_s)
        event = replace(event, evidence=replace(event.evidence, latencies_s=latencies_s))
    text = EVENT.dump_json(event).decode()
    pieces = [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
    return [*(MORE + piece for piece in pieces[:-1]), LAST + pieces[-1]]


@dataclass
class TrialReader:
    """Turns lines into events. Their times are the machine's; the first one gives the offset to the launch's."""

    offset_s: float | None = None
    reports: int = 0
    ended: Ended | None = None
    _last_s: float = -1.0
    _pieces: list[str] = field(default_factory=list)

    def feed(self, output: str, elapsed_s: float) -> list[Sample]:
        """The samples in these lines, which were written at this time. How the trial ended is in `ended`."""
        samples = []
        for line in output.splitlines():
            if line.startswith(MORE):
                self._pieces.append(line.removeprefix(MORE))
            elif line.startswith(LAST):
                event = EVENT.validate_json("".join([*self._pieces, line.removeprefix(LAST)]))
                self._pieces.clear()
                self.reports += 1
                if self.offset_s is None:
                    self.offset_s = max(0.0, elapsed_s - event.elapsed_s)
                event = replace(event, elapsed_s=event.elapsed_s + self.offset_s)
                if isinstance(event, Ended):
                    self.ended = event
                elif event.elapsed_s > self._last_s:
                    samples.append(event)
                    self._last_s = event.elapsed_s
        return samples
