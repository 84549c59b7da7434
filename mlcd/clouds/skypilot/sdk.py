"""All calls to SkyPilot's SDK (version 0.14.1).

A call sends a request to SkyPilot's API server, which survives MLCD, and returns the request's id. A second call waits
for the result.
"""

import contextlib
import io
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from mlcd.clouds.frameworks.reports import LONGEST_LINE
from mlcd.clouds.skypilot.launch_thread import CHECK, LaunchThread, NeverReached
from mlcd.clouds.skypilot.leave_request import LEAVE_COMMAND
from mlcd.clouds.skypilot.liveness import BackgroundAnswer, StaleStatus
from mlcd.clouds.skypilot.output_lines import COLOUR, LINE_ENDS, PREFIX
from mlcd.core.errors import BackendError, MissingExtra, NoAccess, NoCapacity

NOT_FINISHED = 101
"""Return value of `tail_logs`: sky.exceptions.JobExitCode."""
FIRST_JOB = 1
"""Id of a cluster's job. A second job may follow that asks the first one to exit."""
NO_ACCESS = ("NoCloudAccessError", "CloudUserIdentityError", "ApiServerAuthenticationError")
NOT_ENABLED = "not enabled"
"""Part of SkyPilot's error about missing resources, if it has no credentials for the cloud."""
NO_SSH = "Failed to SSH to"
"""Part of SkyPilot's error about machines that run but cannot be logged in to."""
RECONNECTS = 5
"""Attempts to follow a job's output when the connection breaks."""
_CAUSE = re.compile(r"Caused by \w+\([^\n]*: (.+?)['\"]?\)\)$")
"""The cause in a connection error of `requests`: HTTPSConnectionPool(...): ... (Caused by X("...: cause"))."""


def load_sky() -> ModuleType:
    """SkyPilot's package, which takes seconds to load."""
    try:
        with contextlib.redirect_stdout(sys.stderr):  # its log stays on stderr: stdout is for results
            import sky
    except ImportError as error:
        raise MissingExtra("the skypilot backend", "skypilot") from error
    module: ModuleType = sky
    return module


def require_sky() -> None:
    """Raise the one-line hint if SkyPilot is not installed, without importing it."""
    if sys.modules.get("sky") is None and find_spec("sky") is None:
        raise MissingExtra("the skypilot backend", "skypilot")


class Sdk:
    """SkyPilot, as MLCD uses it. `load` imports the SDK when first used. Failures are one-sentence `BackendError`s."""

    def __init__(self, load: Callable[[], Any] | None = None) -> None:
        if load is None:
            require_sky()
        self._load = load or load_sky
        self._quiet = threading.Lock()
        self._status_times: dict[str, int | None] = {}
        """When SkyPilot last updated the status of each cluster, by its own clock."""

    @cached_property
    def _sky(self) -> Any:
        """The SDK. Its import takes seconds and writes to ~/.sky, which a preview in a restricted process may not."""
        return self._load()

    def load(self) -> None:
        """Import the SDK now: while it is imported, stdout of the whole process goes to stderr."""
        _ = self._sky

    def launch(self, name: str, task: Mapping[str, Any], first_boot: Sequence[str] = ()) -> LaunchThread:
        """Order a cluster of this name with the job on it; returns at once. `first_boot`: shell commands, on AWS."""
        return LaunchThread(partial(self._run, name, dict(task), first_boot))

    def follow(self, name: str) -> LaunchThread:
        """Follow the job of a running cluster from its beginning; returns at once."""
        return LaunchThread(partial(self._run, name, None, ()))

    def is_up(self, name: str) -> bool | None:
        """Whether a cluster is up with all of its nodes, according to its cloud; None if it does not exist."""
        records = self._ask(f"status of {name}", self._sky.status, [name], refresh=self._sky.StatusRefreshMode.FORCE)
        if not records:
            return None
        # While another status request runs (minutes, if a node is lost), SkyPilot answers with the old status.
        updated_at, before = records[0].get("status_updated_at"), self._status_times.get(name)
        if updated_at is not None and updated_at == before:
            raise StaleStatus(f"status of {name}: SkyPilot has not updated it since {updated_at}")
        self._status_times[name] = updated_at
        return bool(records[0]["status"] == self._sky.ClusterStatus.UP)

    def request_status(self, name: str) -> BackgroundAnswer:
        """Like `is_up`, but returns at once; the answer comes later."""
        return BackgroundAnswer(partial(self.is_up, name))

    def request_leave(self, name: str, nodes: int) -> BackgroundAnswer:
        """Ask the job of a cluster to save its work and exit; returns at once. The answer: whether it was delivered.

        The request goes to every node, because SkyPilot chooses the node of a smaller task itself.
        """
        return BackgroundAnswer(partial(self._leave, name, nodes))

    def down(self, name: str) -> None:
        """Cancel its launch, if that is in progress, and tear it down; no error if it does not exist."""
        with self._translated_errors(f"cancelling the launch of {name}"):
            requests = self._sky.api_status(cluster_name=name, fields=["request_id", "name", "cluster_name"])
            # An older server ignores the filter. Only launches: a cancelled `down` would leave the machines up.
            launches = [r.request_id for r in requests if r.cluster_name == name and r.name.endswith("launch")]
            if launches:
                self._sky.get(self._sky.api_cancel(launches, silent=True))
        with contextlib.suppress(_NoSuchCluster):
            self._ask(f"tearing down {name}", self._sky.down, name)

    def names(self) -> set[str]:
        """The names of all existing clusters."""
        return {record["name"] for record in self._ask("the list of clusters", self._sky.status)}

    def billed_s(self, name: str) -> float | None:
        """How long a cluster was up that no longer exists; None if it never existed."""
        records = [record for record in self._ask("the cost report", self._sky.cost_report) if record["name"] == name]
        return sum(float(record["duration"] or 0.0) for record in records) if records else None

    def billed_usd(self) -> dict[str, float]:
        """The cost of each cluster, by name."""
        usd: dict[str, float] = {}
        for record in self._ask("the cost report", self._sky.cost_report):
            usd[record["name"]] = usd.get(record["name"], 0.0) + float(record.get("total_cost") or 0.0)
        return usd

    def rents_with_credentials_here(self) -> bool:
        """Whether its API server is on this machine, and so rents with this machine's credentials."""
        with self._translated_errors("the address of its API server"):
            return bool(self._sky.server.common.is_api_server_local())

    def _leave(self, name: str, nodes: int) -> bool:
        task = self._sky.Task.from_yaml_config({"name": "leave", "num_nodes": nodes, "run": LEAVE_COMMAND})
        self._ask(f"asking the job of {name} to exit", self._sky.exec, task, cluster_name=name)
        return True

    def _run(self, name: str, task: dict[str, Any] | None, first_boot: Sequence[str], thread: LaunchThread) -> int:
        """Runs in a thread: order the task, if there is one, wait for the machines, then follow the job."""
        sky, output = self._sky, _Writer(thread.write)
        job = FIRST_JOB
        try:
            if task is not None:
                # What SkyPilot prints goes to the log: stdout is for MLCD's results.
                with self._quiet, contextlib.redirect_stdout(output), self._at_first_boot(first_boot):
                    request = sky.launch(sky.Task.from_yaml_config(task), cluster_name=name)
                thread.ordered()
                if thread.stopped:  # the caller tears down next, which cancels the request
                    return NOT_FINISHED
                job, _ = sky.stream_and_get(request, output_stream=output)
            thread.started()
            return self._follow(name, job, output)
        except sky.exceptions.ResourcesUnavailableError as error:
            if NOT_ENABLED in str(error):
                raise no_access(_line(error)) from error
            raise NoCapacity(f"no machines available: {_line(error)}") from error
        except Exception as error:  # the SDK raises its server's errors, of any type; they end the launch
            why = f"{type(error).__name__}: {_line(error)}"
            if NO_SSH in str(error):
                raise NeverReached(f"the machines could not be reached: {_line(error)}") from error
            if isinstance(error, tuple(getattr(sky.exceptions, name) for name in NO_ACCESS)):
                raise no_access(why) from error
            raise BackendError(f"SkyPilot: {why}; {CHECK}") from error

    @contextlib.contextmanager
    def _at_first_boot(self, commands: Sequence[str]) -> Iterator[None]:
        """Launches in this context run these commands at the machines' first boot, after the user's own ones.

        This is only possible through SkyPilot's configuration, which a client sends with each request.
        """
        if not commands:
            yield
            return
        config, key = self._sky.skypilot_config, ("aws", "post_provision_runcmd")
        all_commands = [*(config.get_nested(key, None) or []), *commands]
        with config.override_skypilot_config({key[0]: {key[1]: all_commands}}):
            yield

    def _follow(self, name: str, job: int | None, output: "_Writer") -> int:
        """Write the job's output until it ends; return its exit code."""
        lines = _JobLines(output)
        for tries_left in reversed(range(RECONNECTS)):
            lines.from_the_start()
            try:
                code = int(self._sky.tail_logs(name, job, follow=True, output_stream=lines))
                lines.end()
            except self._sky.exceptions.ClusterDoesNotExist:
                raise
            except Exception:  # of any type: see `_run`. A broken stream is read again
                if not tries_left:
                    raise
            else:
                if code != NOT_FINISHED:
                    return code
        return NOT_FINISHED

    def _ask(self, what: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """The result of a request."""
        with self._translated_errors(what):
            return self._sky.get(call(*arguments, **options))

    @contextlib.contextmanager
    def _translated_errors(self, what: str) -> Any:
        """Turn SkyPilot's errors, which can be of any type, into `BackendError`."""
        try:
            yield
        except self._sky.exceptions.ClusterDoesNotExist as error:
            raise _NoSuchCluster(str(error)) from error
        except Exception as error:
            raise BackendError(f"SkyPilot, {what}: {type(error).__name__}: {_line(error)}") from error


def no_access(why: str) -> NoAccess:
    """The error for a missing permission: of SkyPilot in every cloud, or of this user in SkyPilot."""
    return NoAccess(f"SkyPilot may not rent anything: {why}; {CHECK}")


class _NoSuchCluster(BackendError):
    """The cluster does not exist."""


class _Writer(io.TextIOBase):
    """A text file that passes everything written to a function."""

    def __init__(self, put: Callable[[str], object]) -> None:
        self._put = put

    def write(self, text: str) -> int:
        if not isinstance(text, str):  # click writes b"" to find out whether this is a binary file
            raise TypeError("write() argument must be str")
        self._put(text)
        return len(text)

    def flush(self) -> None:
        return None


class _JobLines(_Writer):
    """Writes each line of a job's output once, though SkyPilot sends all of it again after a broken connection."""

    def __init__(self, output: _Writer) -> None:
        super().__init__(self._split)
        self._output, self._rest = output, ""
        self._number = self._lines_written = 0

    def from_the_start(self) -> None:
        """The output starts again with the job's first line."""
        self._rest, self._number = "", 0

    def end(self) -> None:
        """The output is complete: write a last line without a line end."""
        if self._rest:
            self._line(self._rest)

    def _split(self, text: str) -> None:
        *lines, self._rest = LINE_ENDS.split(self._rest + text)
        for line in lines:
            self._line(line)
        if len(self._rest) > LONGEST_LINE:  # a progress bar that never ends its line
            self._output.write(self._rest)
            self._rest = ""

    def _line(self, line: str) -> None:
        if PREFIX.match(COLOUR.sub("", line)) is not None:
            self._number += 1
            if self._number <= self._lines_written:
                return
            self._lines_written = self._number
        self._output.write(line)


def _line(error: BaseException) -> str:
    """The first non-empty line of an error; of a failed connection, its cause."""
    plain = COLOUR.sub("", str(error))
    line = next((line.strip() for line in plain.splitlines() if line.strip()), "no reason given")
    cause = _CAUSE.search(line)
    return cause[1] if cause is not None else line
