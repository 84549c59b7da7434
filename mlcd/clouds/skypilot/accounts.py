"""Which cloud credentials SkyPilot will find on this machine. Checks only files and variables."""

import os
from collections.abc import Iterable, Mapping
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
    "lambda": ("~/.lambda_cloud/lambda_keys",),
    "runpod": ("~/.runpod/config.toml",),
    "nebius": ("~/.nebius/NEBIUS_IAM_TOKEN.txt", "~/.nebius/credentials.json"),
}
"""Variables, and files below the home folder."""
_LOGIN = {
    "aws": "aws configure",
    "gcp": "gcloud auth application-default login",
    "azure": "az login",
    "lambda": "sky check lambda",
    "runpod": "runpod config",
    "nebius": "sky check nebius",
}


def accounts(clouds: Iterable[str], environ: Mapping[str, str] = os.environ, home: Path | None = None) -> list[Account]:
    """Of each of these clouds whose credentials MLCD can recognise."""
    below = home if home is not None else Path.home()
    listed = []
    for cloud in clouds:
        places = _PLACES.get(cloud, ())
        if not places:
            continue
        has = [each for each in places if (environ.get(each[1:]) if each[0] == "$" else (below / each[2:]).exists())]
        to_do = f"pip install 'skypilot[{cloud}]' && {_LOGIN[cloud]}"
        listed.append(Account(cloud, has[0] if has else "", "" if has else to_do))
    return listed


def clouds_at_hand(
    clouds: Iterable[str], environ: Mapping[str, str] = os.environ, home: Path | None = None
) -> tuple[str, ...]:
    """Of these clouds those that can be searched: with credentials on this machine; all with a SkyPilot server."""
    return tuple(each.cloud for each in accounts(clouds, environ, home) if each.found or environ.get(SERVER))
