"""Whether all nodes of a launch are there: what they say themselves, and what the cloud says.

The first node's job may go on for minutes, or to its end, without a node that was lost. What it reports then is not the
rate of all nodes, so a report counts only once every node is known to have been there at that time or later.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from mlcd.core.errors import BackendError

ASK_S = 60.0
"""How often the cloud is asked, whatever the nodes say."""
SILENT_S = 45.0
"""A node that is not heard for so long, while others are, is a reason to ask the cloud at once: four missed lines."""
ASK_AGAIN_S = 15.0
"""A cluster that is said not to be up is asked for again: SkyPilot says so, too, if it cannot reach the first node."""
GIVE_UP_S = 120.0
"""After so long without an answer the question is asked again."""


class OldAnswer(BackendError):
    """What the cloud said before it was asked."""


class Answer:
    """Asks in a thread whether a cluster is up: the cloud takes seconds to answer, and the output is read meanwhile."""

    def __init__(self, ask: Callable[[], bool | None]) -> None:
        self.value: bool | BackendError | None = None
        """True: up, with all nodes. False: it exists. None: it does not exist. An error: not known."""
        self._ask = ask
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def given(self) -> bool:
        """Whether the answer has come."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.value = self._ask()
        except BackendError as error:
            self.value = error
        except Exception as error:  # an exception of a thread reaches nobody
            self.value = BackendError(f"{type(error).__name__}: {error}")


@dataclass
class NodeClock:
    """Turns the time of day on a node into seconds since the order.

    The clocks of a cloud's machines and of this one agree to a second or so; the first lines may arrive minutes late.
    Where the clocks cannot agree (a line from before the order, or from the future), the first line gives the offset.
    """

    ordered_at: float
    offset_s: float | None = None

    def elapsed_s(self, at: float, now_s: float) -> float:
        """When a line was written that is read now."""
        if self.offset_s is None:
            agrees = 0.0 <= at - self.ordered_at <= now_s
            self.offset_s = -self.ordered_at if agrees else now_s - at
        return at + self.offset_s


@dataclass
class Presence:
    """When each node was last known to be there; times are seconds since the order."""

    nodes: int
    heard_s: dict[int, float] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    latest_s: float = 0.0
    """The latest time that any node has told."""

    def hear(self, node: int, at_s: float) -> None:
        """A node has said something."""
        self.heard_s[node] = max(at_s, self.heard_s.get(node, 0.0))
        self.latest_s = max(at_s, self.latest_s)

    def end(self, node: int) -> None:
        """The job has ended well on a node, which says no more."""
        self.ended.add(node)

    def confirm(self, at_s: float) -> None:
        """The cloud has all nodes."""
        for node in range(self.nodes):
            self.heard_s[node] = max(at_s, self.heard_s.get(node, 0.0))

    @property
    def known_until_s(self) -> float:
        """The last moment at which all nodes are known to have been there; the first one's own reports show it."""
        others = (inf if node in self.ended else self.heard_s.get(node, 0.0) for node in range(1, self.nodes))
        return min(others, default=inf)

    @property
    def is_one_silent(self) -> bool:
        """Whether a node that was heard is not heard any more, while others are."""
        others = (node for node in self.heard_s if node and node not in self.ended)
        return any(self.latest_s - self.heard_s[node] >= SILENT_S for node in others)

    @property
    def have_others_ended(self) -> bool:
        """Whether the job has ended well on all nodes but the first."""
        return all(node in self.ended for node in range(1, self.nodes))

    def was_heard_since(self, at_s: float) -> bool:
        """Whether all nodes were heard after this time."""
        return all(node in self.ended or self.heard_s.get(node, 0.0) > at_s for node in range(self.nodes))


@dataclass
class Watch:
    """Asks the cloud for the nodes: regularly, at once when one is silent, and again when they are not all there.

    They are lost if the cluster does not exist, or is not up twice in a row while not every node is heard.
    """

    ask: Callable[[], Answer]
    presence: Presence
    asked_s: float
    question: Answer | None = None
    doubted_s: float | None = None

    def is_lost(self, now_s: float) -> bool:
        """Whether nodes are lost, as far as it is known now."""
        if self.question is not None and self.question.given():
            value, self.question = self.question.value, None
            if self._says_lost(value):
                return True
        waits_s = GIVE_UP_S if self.question is not None else self._next_in_s()
        if now_s - self.asked_s >= waits_s:
            self.question, self.asked_s = self.ask(), now_s
        return False

    def _next_in_s(self) -> float:
        return ASK_AGAIN_S if self.doubted_s is not None or self.presence.is_one_silent else ASK_S

    def _says_lost(self, value: bool | BackendError | None) -> bool:
        if value is None:
            return True
        if isinstance(value, BackendError):  # not reachable does not mean lost
            return False
        if value:
            self.presence.confirm(self.asked_s)
            self.doubted_s = None
            return False
        if self.doubted_s is None:
            self.doubted_s = self.asked_s
            return False
        if self.presence.was_heard_since(self.doubted_s):
            self.doubted_s = None
            return False
        return True
