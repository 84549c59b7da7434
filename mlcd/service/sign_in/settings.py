"""The TOML file with the sign-in provider and the roles of its groups.

The first group in the file that somebody is in decides their role: grants are not combined.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from mlcd.core.errors import UserError
from mlcd.core.home import private_text
from mlcd.service.team.budget import Per
from mlcd.service.team.members import Role, check_name

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Grant(_Part):
    """What members of a group get. The budget is only the initial one: an admin may change it."""

    role: Role
    team: str | None = None
    budget_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    budget_per: Per = Per.TOTAL

    @field_validator("team")
    @classmethod
    def _is_a_name(cls, team: str | None) -> str | None:
        if team is not None:
            try:
                check_name("team", team)
            except UserError as error:
                raise ValueError(str(error)) from None
        return team


RoleOrGrant = Annotated[Grant, BeforeValidator(lambda given: {"role": given} if isinstance(given, str) else given)]


class SignInSettings(_Part):
    """A provider, and who may sign in with it."""

    issuer: str
    client_id: str = Field(min_length=1)
    client_secret_file: Path | None = None
    name: str = Field(default="", max_length=40)
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    name_claim: str | None = None
    groups_claim: str = "groups"
    session_hours: float = Field(default=12.0, gt=0, le=24 * 7)
    tokens_days: int = Field(default=30, ge=1, le=365)
    groups: Mapping[str, RoleOrGrant] = Field(default_factory=dict)
    default: RoleOrGrant | None = None

    @field_validator("issuer")
    @classmethod
    def _is_an_address(cls, issuer: str) -> str:
        check_address(issuer, "write it as the provider does, such as https://sso.example.org/realms/lab")
        return issuer

    @model_validator(mode="after")
    def _lets_somebody_in(self) -> Self:
        if not self.groups and self.default is None:
            raise ValueError("nobody could sign in: add [groups] or a default role")
        return self

    @property
    def shown(self) -> str:
        """The provider's display name."""
        return self.name or str(urlsplit(self.issuer).hostname)

    @property
    def names_teams(self) -> bool:
        """Whether the file assigns teams; otherwise admins do."""
        return any(grant is not None and grant.team is not None for grant in (*self.groups.values(), self.default))

    def grant(self, groups: set[str]) -> Grant | None:
        """The grant of somebody in these groups; None: they may not sign in."""
        return next((grant for group, grant in self.groups.items() if group in groups), self.default)


def read(file: Path) -> tuple[SignInSettings, str | None]:
    """Read the settings, and the client's secret if there is one; `UserError` names the first mistake."""
    try:
        with file.open("rb") as opened:
            document = tomllib.load(opened)
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: not TOML: {error}") from None
    try:
        settings = SignInSettings.model_validate(document)
    except ValidationError as error:
        raise UserError(f"{file}: {_first(error)}") from None
    secret = (
        private_text(file.parent / settings.client_secret_file) if settings.client_secret_file is not None else None
    )
    return settings, secret


def check_address(url: str, advice: str) -> None:
    """`ValueError` unless the URL is https or on this machine: codes and tokens are sent there."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not parts.hostname or not is_safe or parts.username or parts.fragment or not url.isprintable():
        raise ValueError(f"{url[:200]!r} is not an https URL; {advice}")


def _first(error: ValidationError) -> str:
    first: Any = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    words = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {words}" if where else words
