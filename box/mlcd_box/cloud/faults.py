"""What is to go wrong: rules in a file, which is read at every request, so that they can change at any time.

A rule names what it is about by patterns (`type`, `zone`, `market`; left out: any) and an effect:
no-capacity    RunInstances is refused: InsufficientInstanceCapacity
quota          RunInstances is refused: VcpuLimitExceeded (on-demand) or MaxSpotInstanceCountExceeded
slow-boot      the machine answers ssh only after `seconds`
no-ssh         the machine runs, and never answers ssh
throttle       requests to EC2 are refused, a `share` of them: RequestLimitExceeded
api-down       every request to AWS is answered with an error 503
throttle-calls requests to call a function are refused, a `share` of them: TooManyRequestsException, 429
few-calls      no more than `most` calls of functions run at once; queued ones wait
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
    """Something that goes wrong. `seconds`: of a slow boot; `share`: of requests that are throttled; `most`: calls."""

    effect: str
    type: str = "*"
    zone: str = "*"
    market: str = "*"
    seconds: float = 120.0
    share: float = 0.5
    most: int = 10

    def is_about(self, type: str, zone: str, market: str) -> bool:
        """Whether it is about such a machine."""
        return fnmatch(type, self.type) and fnmatch(zone, self.zone) and fnmatch(market, self.market)


@dataclass(frozen=True)
class Faults:
    """The rules of a box."""

    path: Path

    def rules(self, *effects: str) -> list[Rule]:
        """Those with one of these effects; all where none is named."""
        try:
            written = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        return [rule for rule in (Rule(**each) for each in written) if not effects or rule.effect in effects]

    def write(self, rules: list[Rule]) -> None:
        """Replace them all, at once: the cloud may read at any moment."""
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps([asdict(rule) for rule in rules]), encoding="utf-8")
        beside.replace(self.path)

    def refusal(self, type: str, zone: str, market: str) -> tuple[str, str] | None:
        """EC2's code and message, if such a machine cannot be had."""
        for rule in self.rules("no-capacity", "quota"):
            if rule.is_about(type, zone, market):
                return no_capacity(type, zone) if rule.effect == "no-capacity" else _over_quota(market)
        return None

    def is_throttled(self) -> bool:
        """Whether this request to call a function is refused."""
        return any(random.random() < rule.share for rule in self.rules("throttle-calls"))

    def calls_at_once(self) -> int:
        """Calls of functions that may run at once."""
        return min([CONCURRENT, *(rule.most for rule in self.rules("few-calls"))])

    def ssh_after_s(self, type: str, zone: str, market: str) -> float:
        """How long such a machine does not answer ssh."""
        after: Mapping[str, float] = {
            rule.effect: rule.seconds for rule in self.rules("slow-boot", "no-ssh") if rule.is_about(type, zone, market)
        }
        return NEVER_S if "no-ssh" in after else after.get("slow-boot", 0.0)


def no_capacity(type: str, zone: str) -> tuple[str, str]:
    """EC2's code and message where a zone has no such machine."""
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
