"""Heartbeat intervals and timeouts of workers and drivers, and the limits of each member."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds. The runs of a dead worker are taken over after at most `silent_s` + `sweep_s` + `recheck_s`.

    `recheck_s`: a worker without heartbeat is checked again after this, since after a database outage all heartbeats
    are late. `grace_s`: when a worker is told to end, its runs have so long to finish their step; then they are torn
    down.

    A driver is checked every `watch_s`, and ended if it has no heartbeat for `hung_s`, or for `unresponsive_s` while
    its user wants it to stop; `late_s` after its deadline or after the lifetime of a launch; `down_s` after its user
    took it down. It gets SIGTERM first, and SIGKILL after `kill_s`.
    """

    heartbeat_s: float = 4.0
    silent_s: float = 10.0
    sweep_s: int = 5
    recheck_s: float = 2.0
    poll_s: float = 2.0
    retry_s: float = 5.0
    grace_s: float = 30.0
    watch_s: float = 2.0
    hung_s: float = 600.0
    unresponsive_s: float = 20.0
    late_s: float = 120.0
    down_s: float = 60.0
    kill_s: float = 15.0


TIMING = Timing()
EXIT_TIMEOUT_S = 30.0  # how long a process may take for teardown after it was told to end


@dataclass(frozen=True)
class Caps:
    """Limits that keep one member from starving the others.

    For each member: `running` runs at once on all workers, `queued` runs in the queue. For each run that only computes
    (simulated or recorded cloud): `probes`, and seconds of computing.
    """

    running: int = 4
    queued: int = 50
    probes: int = 2_000
    computing_s: float = 1_800.0


CAPS = Caps()
