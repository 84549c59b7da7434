"""Which cloud credentials SkyPilot will find on this machine. Checks only files and variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SERVER = "SKYPILOT_API_SERVER_ENDPOINT"


@dataclass(frozen=True)
class Account:
    """Of a cloud: where its credentials are, or how to get them."""

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
    """Of each cloud in MLCD's catalog."""
    below = home if home is not None else Path.home()
    listed = []
    for cloud, (variables, files, to_do) in _PLACES.items():
        named = [f"${name}" for name in variables if environ.get(name)]
        named += [f"~/{file}" for file in files if (below / file).exists()]
        listed.append(Account(cloud, named[0] if named else "", "" if named else to_do))
    return listed


def clouds_at_hand(environ: Mapping[str, str] = os.environ, home: Path | None = None) -> tuple[str, ...]:
    """Clouds that can be searched: those with credentials on this machine; all with a SkyPilot server."""
    if environ.get(SERVER):
        return tuple(_PLACES)
    return tuple(account.cloud for account in accounts(environ, home) if account.found)
