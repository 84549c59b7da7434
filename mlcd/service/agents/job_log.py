"""The end of what a job has written. A service gives a log from any byte on, and does not say how long it is."""

from dataclasses import dataclass

from mlcd.service.agents import answers
from mlcd.service.agents.desk import printable
from mlcd.service.remote.server import Server, run_path

MOST_LINES, MOST_LETTERS = 400, 20_000
MOST_READ = 2**20
"""Letters that are read of the end: a job may write faster than one reads."""


@dataclass(frozen=True)
class _Log:
    """The log of one process of a launch, at a service."""

    server: Server
    run: str
    launch: int | None
    process: int

    def piece(self, after: int) -> answers.LogPiece:
        """What was written from this byte on, as much of it as fits into an answer."""
        found = self.server.get(run_path(self.run, "logs"), launch=self.launch, process=self.process, after=after)
        with self.server.reading():
            return answers.LogPiece.model_validate(found)


def end_of_log(server: Server, run: str, lines: int, launch: int | None, process: int) -> answers.JobLog:
    """The last lines, in few requests however long the log is: where it ends is found by bisection."""
    first = _Log(server, run, launch, process).piece(0)
    log = _Log(server, run, first.launch, process)  # stays with a launch while another one begins
    low, high = 0, 1  # pieces as long as the first: there is one that begins at `low`, and none at `high`
    while first.next and log.piece(high * first.next).text:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if log.piece(middle * first.next).text else (low, middle)
    begin = max(0, low * first.next - 4 * MOST_LETTERS)  # a letter has four bytes at the most
    last = log.piece(begin)
    whole = last.text
    while last.text and not last.done and len(whole) < MOST_READ:
        last = log.piece(last.next)
        whole += last.text
    written = whole.removesuffix("\n").split("\n")
    if begin and len(written) > 1:
        written.pop(0)  # the end of a line
    kept = [_as_on_a_screen(line) for line in written[-lines:]]
    text = "\n".join(kept)
    return answers.JobLog(
        run=run,
        launch=first.launch,
        text=text[-MOST_LETTERS:],
        earlier=begin > 0 or len(written) > len(kept) or len(text) > MOST_LETTERS,
        done=last.done,
    )


def _as_on_a_screen(line: str) -> str:
    """What a terminal would show of it last, as after a progress bar; without what would control it."""
    return printable(line.rstrip("\r").rpartition("\r")[2].expandtabs())
