r"""Splits the output of a launch into lines, and parses what `start.sh` adds to them.

`step 7 [mlcd 1746100000.123]`        a line of the reporting process, with a timestamp of its node: see `stamp.py`
`@mlcd alive node=1 at=1746100000`    every ten seconds, from each node but the first
`@mlcd exit=0 node=1 at=1746100000`   the job's main process on a node has ended
"""

import re
from dataclasses import dataclass

from mlcd.clouds.frameworks.reports import LONGEST_LINE

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
    """A line of output. `text`: without colours and prefixes. `shown`: as written to the user's log.

    `at`: Unix time on the node, None if the line has no timestamp. `alive`: the node that sent this heartbeat. `exit`:
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
        """The lines that are complete now. The beginning of a very long line is returned as a line without text."""
        *lines, rest = LINE_ENDS.split(self._rest + output)
        parsed = [_parse(line) for line in lines]
        self._rest = rest[-LONGEST_LINE:]
        if len(rest) > LONGEST_LINE:
            parsed.append(Line("", rest[:-LONGEST_LINE]))
        return parsed

    def end(self) -> str:
        """The rest of the output: a last line without a line end."""
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
