"""Functions and layers, and how AWS describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

ACCOUNT = "123456789012"
PENDING_S = 1.0
"""So long after its creation a function cannot be called yet."""


@dataclass(frozen=True)
class Archive:
    """A zip file, unpacked in `folder`; its bytes before and after."""

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
        """Of the layer."""
        return f"arn:aws:lambda:{self.region}:{ACCOUNT}:layer:{self.name}"

    def described(self) -> dict[str, Any]:
        """As in a list of versions."""
        return {
            "LayerVersionArn": f"{self.arn}:{self.version}",
            "Version": self.version,
            "Description": self.description,
            "CreatedDate": _date(self.created_at),
            "CompatibleRuntimes": list(self.runtimes),
        }


@dataclass(frozen=True)
class Function:
    """A function. What is changed makes another one of the same name, with another `revision`."""

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
    """Calls at once that it may have, and that others may not."""
    retries: int = 2
    """How often a queued call that failed is tried again."""
    revision: str = field(default_factory=lambda: str(uuid4()))

    @property
    def arn(self) -> str:
        """Its name in the whole of AWS."""
        return f"arn:aws:lambda:{self.region}:{ACCOUNT}:function:{self.name}"

    def is_pending(self, now_s: float) -> bool:
        """Whether it is still being created."""
        return now_s < self.created_at + PENDING_S

    def described(self, now_s: float) -> dict[str, Any]:
        """Its configuration, as AWS spells it."""
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
