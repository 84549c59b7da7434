"""Injected faults: rules in a file that is read at every request, so that they can change at any time.

A rule has an effect, and patterns for the machines that it concerns (`type`, `zone`, `market`; default: any):
no-capacity    RunInstances is refused: InsufficientInstanceCapacity
quota          RunInstances is refused: VcpuLimitExceeded (on-demand) or MaxSpotInstanceCountExceeded
slow-boot      the machine answers ssh only after `seconds`
no-ssh         the machine runs, but never answers ssh
throttle       a `share` of the requests to EC2 is refused: RequestLimitExceeded
api-down       every request to AWS fails with status 503
throttle-calls a `share` of the requests to call a function is refused: TooManyRequestsException, 429
few-calls      at most `most` function calls run at once; queued ones wait
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path

from mlcd_box.cloud.functions.rules import CONCURRENT

EFFECTS = ("no-capacity", "quota", "slow-boot", "no-ssh", "throttle", "api-down", "throttle-calls", "few-calls")
NEVER_S = 1e9


@dataclass(frozen=True)
class Rule:
    """A fault. `seconds`: delay of a slow boot; `share`: of requests that are throttled; `most`: calls at once."""

    effect: str
    type: str = "*"
    zone: str = "*"
    market: str = "*"
    seconds: float = 120.0
    share: float = 0.5
    most: int = 10

    def concerns(self, type: str, zone: str, market: str) -> bool:
        """Whether the rule concerns such a machine."""
        return fnmatch(type, self.type) and fnmatch(zone, self.zone) and fnmatch(market, self.market)


@dataclass(frozen=True)
class Faults:
    """The faults of a box."""

    path: Path

    def rules(self, *effects: str) -> list[Rule]:
        """The rules with one of these effects; without effects, all rules."""
        try:
            stored = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        return [rule for rule in (Rule(**each) for each in stored) if not effects or rule.effect in effects]

    def write(self, rules: list[Rule]) -> None:
        """Replace all rules, atomically: the cloud may read the file at any moment."""
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps([asdict(rule) for rule in rules]), encoding="utf-8")
        new.replace(self.path)

    def refusal(self, type: str, zone: str, market: str) -> tuple[str, str] | None:
        """EC2's error code and message if such a machine is refused; None if it is not."""
        for rule in self.rules("no-capacity", "quota"):
            if rule.concerns(type, zone, market):
                return no_capacity(type, zone) if rule.effect == "no-capacity" else _over_quota(market)
        return None

    def is_throttled(self) -> bool:
        """Whether to refuse this request to call a function; random, by the rules' shares."""
        return any(random.random() < rule.share for rule in self.rules("throttle-calls"))

    def calls_at_once(self) -> int:
        """The limit of function calls at once."""
        return min([CONCURRENT, *(rule.most for rule in self.rules("few-calls"))])

    def ssh_after_s(self, type: str, zone: str, market: str) -> float:
        """How long such a machine does not answer ssh after its boot."""
        after: Mapping[str, float] = {
            rule.effect: rule.seconds for rule in self.rules("slow-boot", "no-ssh") if rule.concerns(type, zone, market)
        }
        return NEVER_S if "no-ssh" in after else after.get("slow-boot", 0.0)


def no_capacity(type: str, zone: str) -> tuple[str, str]:
    """EC2's error code and message if a zone has no capacity."""
    return "InsufficientInstanceCapacity", (
        f"We currently do not have sufficient {type} capacity in the Availability Zone you requested ({zone}). "
        "Our system will be working on provisioning additional capacity."
    )


def _over_quota(market: str) -> tuple[str, str]:
    if market == "spot":
        return "MaxSpotInstanceCountExceeded", "Max spot instance count exceeded"
    return "VcpuLimitExceeded", (
        "You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance bucket that "
        "the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request "
        "an adjustment to this limit."
    )
