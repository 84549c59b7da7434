"""Functions and layers, and their JSON descriptions as AWS returns them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

ACCOUNT = "123456789012"
PENDING_S = 1.0
"""How long a new function cannot be called yet."""


@dataclass(frozen=True)
class Archive:
    """A zip file that is unpacked in `folder`. `packed`, `unpacked`: its size in bytes."""

    folder: Path
    sha256: str
    packed: int
    unpacked: int


@dataclass(frozen=True)
class Layer:
    """One version of a layer."""

    name: str
    version: int
    region: str
    archive: Archive
    description: str
    runtimes: tuple[str, ...]
    created_at: float

    @property
    def arn(self) -> str:
        """The ARN of the layer."""
        return f"arn:aws:lambda:{self.region}:{ACCOUNT}:layer:{self.name}"

    def described(self) -> dict[str, Any]:
        """Its description, as in a list of versions."""
        return {
            "LayerVersionArn": f"{self.arn}:{self.version}",
            "Version": self.version,
            "Description": self.description,
            "CreatedDate": _date(self.created_at),
            "CompatibleRuntimes": list(self.runtimes),
        }


@dataclass(frozen=True)
class Function:
    """A function. A change makes a new object with the same name and another `revision`."""

    name: str
    region: str
    runtime: str
    handler: str
    role: str
    memory_mb: int
    timeout_s: int
    code: Archive
    layers: tuple[Layer, ...]
    variables: Mapping[str, str]
    description: str
    tags: Mapping[str, str]
    created_at: float
    reserved: int | None = None
    """Reserved concurrency: calls at once that only this function may use."""
    retries: int = 2
    """How often a queued call is retried after it failed."""
    revision: str = field(default_factory=lambda: str(uuid4()))

    @property
    def arn(self) -> str:
        """The ARN of the function."""
        return f"arn:aws:lambda:{self.region}:{ACCOUNT}:function:{self.name}"

    def is_pending(self, now_s: float) -> bool:
        """Whether it is still being created."""
        return now_s < self.created_at + PENDING_S

    def described(self, now_s: float) -> dict[str, Any]:
        """Its configuration, as AWS returns it."""
        return {
            "FunctionName": self.name,
            "FunctionArn": self.arn,
            "Runtime": self.runtime,
            "Role": self.role,
            "Handler": self.handler,
            "CodeSize": self.code.packed,
            "CodeSha256": self.code.sha256,
            "Description": self.description,
            "Timeout": self.timeout_s,
            "MemorySize": self.memory_mb,
            "LastModified": _date(self.created_at),
            "Version": "$LATEST",
            "Environment": {"Variables": dict(self.variables)},
            "Layers": [{"Arn": f"{each.arn}:{each.version}", "CodeSize": each.archive.packed} for each in self.layers],
            "State": "Pending" if self.is_pending(now_s) else "Active",
            "LastUpdateStatus": "Successful",
            "PackageType": "Zip",
            "Architectures": ["x86_64"],
            "RevisionId": self.revision,
        }


def _date(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.000+0000")
