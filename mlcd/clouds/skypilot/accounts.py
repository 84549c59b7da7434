"""What SkyPilot will find on this machine to log in to clouds with. Looks at files and variables alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SERVER = "SKYPILOT_API_SERVER_ENDPOINT"


@dataclass(frozen=True)
class Account:
    """Of a cloud: where credentials were found, or what to do to have them."""

    cloud: str
    found: str
    to_do: str


_PLACES: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "aws": (
        ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"),
        (".aws/credentials", ".aws/config"),
        "pip install 'skypilot[aws]' && aws configure",
    ),
    "gcp": (
        ("GOOGLE_APPLICATION_CREDENTIALS",),
        (".config/gcloud/application_default_credentials.json",),
        "pip install 'skypilot[gcp]' && gcloud auth application-default login",
    ),
    "azure": (
        ("AZURE_CLIENT_ID",),
        (".azure/msal_token_cache.json", ".azure/msal_token_cache.bin"),
        "pip install 'skypilot[azure]' && az login",
    ),
}
"""Variables, files below the home folder, and how to get them."""


def accounts(environ: Mapping[str, str] = os.environ, home: Path | None = None) -> list[Account]:
    """Of each cloud that MLCD has prices of."""
    below = home if home is not None else Path.home()
    found = []
    for cloud, (variables, files, to_do) in _PLACES.items():
        named = [f"${name}" for name in variables if environ.get(name)]
        named += [f"~/{file}" for file in files if (below / file).exists()]
        found.append(Account(cloud, named[0] if named else "", "" if named else to_do))
    return found


def clouds_at_hand(environ: Mapping[str, str] = os.environ, home: Path | None = None) -> tuple[str, ...]:
    """Clouds to look for machines in: those with credentials here, or all where a server has them."""
    if environ.get(SERVER):
        return tuple(_PLACES)
    return tuple(account.cloud for account in accounts(environ, home) if account.found)
