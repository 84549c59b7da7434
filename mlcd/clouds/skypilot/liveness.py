"""Whether all nodes of a launch are up, from their heartbeats and from the cloud's status.

When a node is lost, the first node's job may go on for minutes, or to its end. What it reports then is not the rate of
all nodes, so a report counts only once every node is known to have been up at that time or later.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from mlcd.core.errors import BackendError

STATUS_EVERY_S = 60.0
"""Interval at which the cloud's status is requested, whatever the heartbeats say."""
SILENT_S = 45.0
"""If a node sends no heartbeat for so long (four are missed) while others do, the status is requested at once."""
SECOND_STATUS_AFTER_S = 15.0
"""Time until a second status request after 'not up': SkyPilot says that, too, if it cannot reach the first node."""
STATUS_TIMEOUT_S = 120.0
"""Timeout of a status request; then another one is sent."""


class StaleStatus(BackendError):
    """SkyPilot answered with a status from before the request."""


class BackgroundAnswer:
    """Runs a request in a thread, such as whether a cluster is up: a cloud takes seconds to answer."""

    def __init__(self, request: Callable[[], bool | None]) -> None:
        self.value: bool | BackendError | None = None
        """Of a status. True: up, with all nodes. False: it exists. None: it does not exist. An error: not known."""
        self._request = request
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def is_ready(self) -> bool:
        """Whether the answer has arrived."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.value = self._request()
        except BackendError as error:
            self.value = error
        except Exception as error:  # nobody would see an exception in a thread
            self.value = BackendError(f"{type(error).__name__}: {error}")


@dataclass
class NodeClock:
    """Converts the time of day on a node to seconds since the order.

    Normally the clocks of a cloud's machines and of this one agree to about a second, while the first lines may arrive
    minutes late. If the clocks cannot agree (a line from before the order, or from the future), the first line gives
    the offset.
    """

    ordered_at: float
    offset_s: float | None = None

    def elapsed_s(self, at: float, now_s: float) -> float:
        """When a line with timestamp `at` was written. `now_s`: when it is read."""
        if self.offset_s is None:
            agrees = 0.0 <= at - self.ordered_at <= now_s
            self.offset_s = -self.ordered_at if agrees else now_s - at
        return at + self.offset_s


@dataclass
class NodeLiveness:
    """When each node was last known to be up; times are seconds since the order."""

    nodes: int
    heard_s: dict[int, float] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    latest_s: float = 0.0
    """The latest heartbeat of any node."""

    def record_heartbeat(self, node: int, at_s: float) -> None:
        """A node has written a line."""
        self.heard_s[node] = max(at_s, self.heard_s.get(node, 0.0))
        self.latest_s = max(at_s, self.latest_s)

    def record_end(self, node: int) -> None:
        """The job has ended successfully on a node, which sends no more heartbeats."""
        self.ended.add(node)

    def record_all_up(self, at_s: float) -> None:
        """According to the cloud, all nodes are up."""
        for node in range(self.nodes):
            self.heard_s[node] = max(at_s, self.heard_s.get(node, 0.0))

    @property
    def complete_until_s(self) -> float:
        """The last moment at which all nodes are known to have been up; the first one shows it by its own reports."""
        others = (inf if node in self.ended else self.heard_s.get(node, 0.0) for node in range(1, self.nodes))
        return min(others, default=inf)

    @property
    def has_silent_node(self) -> bool:
        """Whether the heartbeats of a node have stopped, while others go on."""
        others = (node for node in self.heard_s if node and node not in self.ended)
        return any(self.latest_s - self.heard_s[node] >= SILENT_S for node in others)

    @property
    def have_others_ended(self) -> bool:
        """Whether the job has ended successfully on all nodes but the first."""
        return all(node in self.ended for node in range(1, self.nodes))

    def all_heard_since(self, at_s: float) -> bool:
        """Whether every node has sent a heartbeat after this time."""
        return all(node in self.ended or self.heard_s.get(node, 0.0) > at_s for node in range(self.nodes))


@dataclass
class LossDetector:
    """Detects lost nodes from the cloud's status: requested regularly, at once if a node is silent, again if 'not up'.

    Nodes are lost if the cluster does not exist, or is not up twice in a row without a heartbeat of every node between.
    """

    request_status: Callable[[], BackgroundAnswer]
    liveness: NodeLiveness
    requested_s: float
    pending: BackgroundAnswer | None = None
    suspected_s: float | None = None

    def is_lost(self, now_s: float) -> bool:
        """Whether nodes are known to be lost. Never waits."""
        if self.pending is not None and self.pending.is_ready():
            status, self.pending = self.pending.value, None
            if self._confirms_loss(status):
                return True
        wait_s = STATUS_TIMEOUT_S if self.pending is not None else self._interval_s()
        if now_s - self.requested_s >= wait_s:
            self.pending, self.requested_s = self.request_status(), now_s
        return False

    def _interval_s(self) -> float:
        return (
            SECOND_STATUS_AFTER_S if self.suspected_s is not None or self.liveness.has_silent_node else STATUS_EVERY_S
        )

    def _confirms_loss(self, status: bool | BackendError | None) -> bool:
        if status is None:
            return True
        if isinstance(status, BackendError):  # not reachable does not mean lost
            return False
        if status:
            self.liveness.record_all_up(self.requested_s)
            self.suspected_s = None
            return False
        if self.suspected_s is None:
            self.suspected_s = self.requested_s
            return False
        if self.liveness.all_heard_since(self.suspected_s):
            self.suspected_s = None
            return False
        return True
