r"""The output of a launch, line by line, and what `start.sh` adds to it.

`step 7 [mlcd 1746100000.123]`        a line of the process that reports, with the time on its node: see `stamp.py`
`@mlcd alive node=1 at=1746100000`    every ten seconds, from each node but the first
`@mlcd exit=0 node=1 at=1746100000`   the job's main process on a node has ended
"""

import re
from dataclasses import dataclass

from mlcd.clouds.platforms.reports import LONGEST_LINE

COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""Terminal colours in SkyPilot's output."""
PREFIX = re.compile(r"^\([^()]*\bpid=\d+[^()]*\) ?")
"""SkyPilot's prefix of every line of a job: (head, rank=0, pid=2317)."""
LINE_ENDS = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")
"""A progress bar ends its lines with a carriage return."""
_STAMP = re.compile(r" \[mlcd (\d+\.\d{3})\](?=[\r\n]*$)")
_ALIVE = re.compile(r"@mlcd alive node=(\d+) at=(\d+)\s*$")
_EXIT = re.compile(r"@mlcd exit=(\d+) node=(\d+)(?: at=(\d+))?\s*$")  # may follow a line that has no end


@dataclass(frozen=True)
class Line:
    """A line of output. `text`: without colours and prefixes; `shown`: what the user's log has of it.

    `at`: the Unix time on the node, None if the line has none. `alive`: the node that says that it is there. `exit`:
    the exit status and the node of a process that has ended.
    """

    text: str
    shown: str
    at: float | None = None
    alive: int | None = None
    exit: tuple[int, int] | None = None


@dataclass
class Lines:
    """Splits output into lines."""

    _rest: str = ""

    def feed(self, output: str) -> list[Line]:
        """The lines that are complete now. Of a very long one, the beginning comes as a line without text."""
        *lines, rest = LINE_ENDS.split(self._rest + output)
        found = [_parse(line) for line in lines]
        self._rest = rest[-LONGEST_LINE:]
        if len(rest) > LONGEST_LINE:
            found.append(Line("", rest[:-LONGEST_LINE]))
        return found

    def end(self) -> str:
        """What is left of the output: a last line without an end."""
        rest, self._rest = self._rest, ""
        return rest


def _parse(line: str) -> Line:
    stamped = _STAMP.search(line[-LONGEST_LINE:])
    shown = _STAMP.sub("", line) if stamped is not None else line
    text = PREFIX.sub("", COLOUR.sub("", shown[-LONGEST_LINE:])).rstrip("\r\n")
    if (alive := _ALIVE.search(text)) is not None:
        return Line("", shown[: shown.index("@mlcd alive")] if alive.start() else "", float(alive[2]), int(alive[1]))
    if (ended := _EXIT.search(text)) is not None:
        at = float(ended[3]) if ended[3] is not None else None
        return Line(text, shown, at, exit=(int(ended[1]), int(ended[2])))
    return Line(text, shown, float(stamped[1]) if stamped is not None else None)
