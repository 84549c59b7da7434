"""The events of a trial on another machine as lines of its output: `@mlcd trial JSON`.

Long events are split, since logs limit the length of a line: all parts but the last are marked `@mlcd trial+`.
"""

from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from mlcd.core.measurement import Ended, Event, Sample
from mlcd.planners.serve.nouns import Window

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
PIECE = 8_000
MORE, LAST = "@mlcd trial+ ", "@mlcd trial "
MICROSECONDS = 6
"""Decimal digits of latencies, in seconds."""


def lines_of(event: Event) -> list[str]:
    """Encode an event as lines."""
    if isinstance(event, Sample) and isinstance(event.evidence, Window):
        latencies_s = tuple(round(each, MICROSECONDS) for each in event.evidence.latencies_s)
        event = replace(event, evidence=replace(event.evidence, latencies_s=latencies_s))
    text = EVENT.dump_json(event).decode()
    pieces = [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
    return [*(MORE + piece for piece in pieces[:-1]), LAST + pieces[-1]]


@dataclass
class TrialReader:
    """Decodes lines into events. Their times are shifted from the machine's clock to the launch's by `offset_s`, which
    is taken from the first event.
    """

    offset_s: float | None = None
    reports: int = 0
    ended: Ended | None = None
    _last_s: float = -1.0
    _pieces: list[str] = field(default_factory=list)

    def feed(self, output: str, elapsed_s: float) -> list[Sample]:
        """The samples in these lines, written at this time. The end of the trial is stored in `ended`."""
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
