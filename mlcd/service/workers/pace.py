"""How often workers show that they live, and when one is given up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """Seconds. What a dead worker drove is taken over after at most `silent_s` + `sweep_s` + `doubt_s`.

    `doubt_s`: who seems silent is looked at again after this. When a database comes back everybody seems silent,
    until their next heartbeat. `grace_s`: what runs may take, when a worker is told to end, to come to where nothing of
    them is lost; after that they are torn down.

    A driver is looked at every `watch_s`, and ended from outside if it shows no sign of life for `hung_s`, or for
    `unheard_s` while its user wants it to stop; `late_s` after its deadline, or after a launch of it should have ended;
    `down_s` after it was to be taken down. It is told first, and killed after `kill_s`.
    """

    heartbeat_s: float = 4.0
    silent_s: float = 10.0
    sweep_s: int = 5
    doubt_s: float = 2.0
    poll_s: float = 2.0
    again_s: float = 5.0
    grace_s: float = 30.0
    watch_s: float = 2.0
    hung_s: float = 600.0
    unheard_s: float = 20.0
    late_s: float = 120.0
    down_s: float = 60.0
    kill_s: float = 15.0


PACE = Pace()
