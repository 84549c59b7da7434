"""SkyPilot itself, behind the seam. Every call to its SDK is in this file.

Its calls hand an order to SkyPilot's API server, which lives on when MLCD dies, and return the order's id; a
second call waits for the result. Written against 0.14.1.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

from mlcd.clouds.platforms.reports import LONGEST_LINE
from mlcd.clouds.skypilot.client import ClusterState, End, EndKind
from mlcd.clouds.skypilot.stream import COLOUR, PREFIX, Stream
from mlcd.core.errors import BackendError, MissingExtra

SUCCEEDED, NOT_FINISHED = 0, 101
"""What following a job's output returns: sky.exceptions.JobExitCode."""
NO_ACCESS = ("NoCloudAccessError", "CloudUserIdentityError", "ApiServerAuthenticationError")
NOT_ENABLED = "not enabled"
"""What SkyPilot says of a cloud that it has no credentials for, where it speaks of missing resources."""
LISTENS = 5
"""Times that a broken connection to a job is made again."""
_CAUSE = re.compile(r"Caused by \w+\([^\n]*: (.+?)['\"]?\)\)$")
"""At the end of what `requests` says of a connection: HTTPSConnectionPool(...): ... (Caused by X("...: cause"))."""


def load_sky() -> ModuleType:
    """SkyPilot's package, which takes seconds to load."""
    try:
        with contextlib.redirect_stdout(sys.stderr):  # where its log goes for good: stdout is for results
            import sky
    except ImportError as error:
        raise MissingExtra("the skypilot backend", "skypilot") from error
    module: ModuleType = sky
    return module


class Sdk:
    """SkyPilot's own SDK. `load`: where it comes from."""

    def __init__(self, load: Callable[[], Any] = load_sky) -> None:
        self._sky = load()
        self._quiet = threading.Lock()

    def launch(self, name: str, task: Mapping[str, Any]) -> Stream:
        """Order a cluster of this name with the job on it; returns at once."""
        return Stream(partial(self._launch, name, dict(task)))

    def follow(self, name: str) -> Stream:
        """Follow the job of a cluster that is up, from its beginning; returns at once."""
        return Stream(partial(self._rejoin, name))

    def state(self, name: str) -> ClusterState | None:
        """Of a cluster, as its cloud tells; None if there is none."""
        records = self._ask(f"status of {name}", self._sky.status, [name], refresh=self._sky.StatusRefreshMode.FORCE)
        if not records:
            return None
        return ClusterState.UP if records[0]["status"] == self._sky.ClusterStatus.UP else ClusterState.NOT_UP

    def down(self, name: str) -> None:
        """Stop launching it, if that is under way, and tear it down; nothing to do is fine."""
        with self._told(f"cancelling the launch of {name}"):
            asked = self._sky.api_status(cluster_name=name, fields=["request_id", "name", "cluster_name"])
            # An older server ignores the filter; only launches, for a cancelled `down` would not be one.
            open_ones = [r.request_id for r in asked if r.cluster_name == name and r.name.endswith("launch")]
            if open_ones:
                self._sky.get(self._sky.api_cancel(open_ones, silent=True))
        with contextlib.suppress(_NotThere):
            self._ask(f"tearing down {name}", self._sky.down, name)

    def names(self) -> set[str]:
        """Of all clusters that exist."""
        return {record["name"] for record in self._ask("the list of clusters", self._sky.status)}

    def billed_s(self, name: str) -> float | None:
        """How long a cluster was up that is gone now; None if there never was one."""
        found = [record for record in self._ask("the cost report", self._sky.cost_report) if record["name"] == name]
        return sum(float(record["duration"] or 0.0) for record in found) if found else None

    def _launch(self, name: str, task: dict[str, Any], stream: Stream) -> End:
        """In a thread: order, wait for the machines, follow the job."""
        sky, output = self._sky, _Writer(stream.write)
        try:
            with self._quiet, contextlib.redirect_stdout(output):  # it tells the user on stdout, which is not its own
                request = sky.launch(sky.Task.from_yaml_config(task), cluster_name=name)
            stream.ordered()
            if stream.stopped:  # whoever stopped it tears down next, and cancels the order with that
                return End(EndKind.BROKEN, "stopped while it was being launched")
            job, _ = sky.stream_and_get(request, output_stream=output)
            stream.started()
            code = self._follow(name, job, output)
        except sky.exceptions.ResourcesUnavailableError as error:
            kind = EndKind.NO_ACCESS if NOT_ENABLED in str(error) else EndKind.NO_CAPACITY
            return End(kind, _line(error))
        except Exception as error:  # an SDK over HTTP raises its server's errors, of any kind; here they end a launch
            refused = isinstance(error, tuple(getattr(sky.exceptions, name) for name in NO_ACCESS))
            return End(EndKind.NO_ACCESS if refused else EndKind.BROKEN, f"{type(error).__name__}: {_line(error)}")
        return End(EndKind.DONE if code == SUCCEEDED else EndKind.FAILED, f"SkyPilot's job ended with code {code}")

    def _rejoin(self, name: str, stream: Stream) -> End:
        """In a thread: follow the newest job of a cluster. There is one."""
        stream.ordered()
        stream.started()
        try:
            code = self._follow(name, None, _Writer(stream.write))
        except Exception as error:
            return End(EndKind.BROKEN, f"{type(error).__name__}: {_line(error)}")
        return End(EndKind.DONE if code == SUCCEEDED else EndKind.FAILED, f"SkyPilot's job ended with code {code}")

    def _follow(self, name: str, job: int | None, output: _Writer) -> int:
        """The job's output to its end; the code that tells how it ended."""
        lines = _JobLines(output)
        for left in reversed(range(LISTENS)):
            lines.from_the_start()
            try:
                code = int(self._sky.tail_logs(name, job, follow=True, output_stream=lines))
                lines.end()
            except self._sky.exceptions.ClusterDoesNotExist:
                raise
            except Exception:  # of any kind, see above: a stream that broke is listened to again
                if not left:
                    raise
            else:
                if code != NOT_FINISHED:
                    return code
        return NOT_FINISHED

    def _ask(self, what: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """The result of an order."""
        with self._told(what):
            return self._sky.get(call(*arguments, **options))

    @contextlib.contextmanager
    def _told(self, what: str) -> Any:
        """SkyPilot's errors are of any kind; here they become ours."""
        try:
            yield
        except self._sky.exceptions.ClusterDoesNotExist as error:
            raise _NotThere(str(error)) from error
        except Exception as error:
            raise BackendError(f"SkyPilot, {what}: {type(error).__name__}: {_line(error)}") from error


class _NotThere(BackendError):
    """There is no such cluster."""


class _Writer(io.TextIOBase):
    """A file whose content goes elsewhere."""

    def __init__(self, put: Callable[[str], object]) -> None:
        self._put = put

    def write(self, text: str) -> int:
        if not isinstance(text, str):  # click tries what kind of file this is with b""
            raise TypeError("write() argument must be str")
        self._put(text)
        return len(text)

    def flush(self) -> None:
        return None


class _JobLines(_Writer):
    """A job's output, each line once: SkyPilot tells all of it again after a broken connection."""

    def __init__(self, output: _Writer) -> None:
        super().__init__(self._split)
        self._output, self._rest = output, ""
        self._number = self._told = 0

    def from_the_start(self) -> None:
        """What comes now begins with the job's first line."""
        self._rest, self._number = "", 0

    def end(self) -> None:
        """Nothing more comes: a last line without an end is one, too."""
        if self._rest:
            self._line(self._rest)

    def _split(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._line(f"{line}\n")
        if len(self._rest) > LONGEST_LINE:  # a progress bar that never ends its line
            self._output.write(self._rest)
            self._rest = ""

    def _line(self, line: str) -> None:
        if PREFIX.match(COLOUR.sub("", line)) is not None:
            self._number += 1
            if self._number <= self._told:
                return
            self._told = self._number
        self._output.write(line)


def _line(error: BaseException) -> str:
    """The first line of an error that says anything; of a failed connection, its cause."""
    plain = COLOUR.sub("", str(error))
    line = next((line.strip() for line in plain.splitlines() if line.strip()), "no reason given")
    cause = _CAUSE.search(line)
    return cause[1] if cause is not None else line
