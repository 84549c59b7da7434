"""Runs SkyPilot's blocking calls for one launch in a thread, while the main thread reads the output."""

import threading
from collections import deque
from collections.abc import Callable

from mlcd.core.errors import BackendError

CHECK = "check the network and your credentials: sky check"
"""What to do when SkyPilot cannot rent."""
STOP_WITHIN_S = 600.0
"""How long a stop waits for a task and its files to be sent."""


class NeverReached(BackendError):
    """Machines came up, but SkyPilot could not log in: this launch failed, another one may work."""


class LaunchThread:
    """Runs `work` in a daemon thread, so that Ctrl-C never waits for it. `work` returns the job's exit code.

    Its output and its end can be read at any time.
    """

    def __init__(self, work: Callable[["LaunchThread"], int]) -> None:
        self._written: deque[str] = deque()  # safe to append to in one thread while another one pops
        self._submitted, self._ordered, self._stopped = threading.Event(), threading.Event(), threading.Event()
        self._end: int | BackendError | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Called by `work`: more output."""
        self._written.append(text)

    def ordered(self) -> None:
        """Called by `work`: the order was sent, so its machines can be found by name."""
        self._ordered.set()

    def started(self) -> None:
        """Called by `work`: the machines are up and run the job."""
        self._ordered.set()
        self._submitted.set()

    @property
    def stopped(self) -> bool:
        """Read by `work`: whether it should stop."""
        return self._stopped.is_set()

    def submitted(self) -> bool:
        """Whether the machines are up and run the job."""
        return self._submitted.is_set()

    def read(self) -> str:
        """Output since the last call."""
        return "".join(self._written.popleft() for _ in range(len(self._written)))

    def end(self) -> int | BackendError | None:
        """The exit code of the job, or the error that ended the launch; None while it runs."""
        return self._end

    def stop(self) -> None:
        """Stop. Waits for an order that is being sent, so that `Sdk.down` finds everything that may start."""
        self._stopped.set()
        self._ordered.wait(STOP_WITHIN_S)

    def _run(self, work: Callable[["LaunchThread"], int]) -> None:
        try:
            self._end = work(self)
        except BackendError as error:
            self._end = error
        except BaseException as error:  # nobody would see an exception in a thread
            self._end = BackendError(f"SkyPilot: {type(error).__name__}: {error}; {CHECK}")
        self._ordered.set()
