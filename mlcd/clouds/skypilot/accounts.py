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


_AWS = ("$AWS_ACCESS_KEY_ID", "$AWS_PROFILE", "$AWS_WEB_IDENTITY_TOKEN_FILE", "~/.aws/credentials", "~/.aws/config")
_PLACES = {
    "aws": _AWS,
    "gcp": ("$GOOGLE_APPLICATION_CREDENTIALS", "~/.config/gcloud/application_default_credentials.json"),
    "azure": ("$AZURE_CLIENT_ID", "~/.azure/msal_token_cache.json", "~/.azure/msal_token_cache.bin"),
}
"""Variables, and files below the home folder."""
_LOGIN = {"aws": "aws configure", "gcp": "gcloud auth application-default login", "azure": "az login"}


def accounts(environ: Mapping[str, str] = os.environ, home: Path | None = None) -> list[Account]:
    """Of each cloud in MLCD's catalog."""
    below = home if home is not None else Path.home()
    listed = []
    for cloud, places in _PLACES.items():
        has = [each for each in places if (environ.get(each[1:]) if each[0] == "$" else (below / each[2:]).exists())]
        to_do = f"pip install 'skypilot[{cloud}]' && {_LOGIN[cloud]}"
        listed.append(Account(cloud, has[0] if has else "", "" if has else to_do))
    return listed


def clouds_at_hand(environ: Mapping[str, str] = os.environ, home: Path | None = None) -> tuple[str, ...]:
    """Clouds that can be searched: those with credentials on this machine; all with a SkyPilot server."""
    if environ.get(SERVER):
        return tuple(_PLACES)
    return tuple(account.cloud for account in accounts(environ, home) if account.found)
