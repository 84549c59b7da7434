"""Finds out which cloud credentials SkyPilot will find on this machine, from files and environment variables alone."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

SERVER = "SKYPILOT_API_SERVER_ENDPOINT"


@dataclass(frozen=True)
class Credentials:
    """A cloud's credentials: `location`, the file or variable that has them; or `how_to_get`, a command."""

    cloud: str
    location: str
    how_to_get: str


_AWS = ("$AWS_ACCESS_KEY_ID", "$AWS_PROFILE", "$AWS_WEB_IDENTITY_TOKEN_FILE", "~/.aws/credentials", "~/.aws/config")
_PLACES = {
    "aws": _AWS,
    "gcp": ("$GOOGLE_APPLICATION_CREDENTIALS", "~/.config/gcloud/application_default_credentials.json"),
    "azure": ("$AZURE_CLIENT_ID", "~/.azure/msal_token_cache.json", "~/.azure/msal_token_cache.bin"),
    "lambda": ("~/.lambda_cloud/lambda_keys",),
    "runpod": ("~/.runpod/config.toml",),
    "nebius": ("~/.nebius/NEBIUS_IAM_TOKEN.txt", "~/.nebius/credentials.json"),
}
"""Where each cloud's credentials can be: environment variables, and files in the home folder."""
_LOGIN = {
    "aws": "aws configure",
    "gcp": "gcloud auth application-default login",
    "azure": "az login",
    "lambda": "sky check lambda",
    "runpod": "runpod config",
    "nebius": "sky check nebius",
}


def find_credentials(
    clouds: Iterable[str], environ: Mapping[str, str] = os.environ, home: Path | None = None
) -> list[Credentials]:
    """The credentials of each of these clouds, as far as MLCD can recognise them."""
    below = home if home is not None else Path.home()
    listed = []
    for cloud in clouds:
        places = _PLACES.get(cloud, ())
        if not places:
            continue
        found = [each for each in places if (environ.get(each[1:]) if each[0] == "$" else (below / each[2:]).exists())]
        how_to_get = f"pip install 'skypilot[{cloud}]' && {_LOGIN[cloud]}"
        listed.append(Credentials(cloud, found[0] if found else "", "" if found else how_to_get))
    return listed


def usable_clouds(
    clouds: Iterable[str], environ: Mapping[str, str] = os.environ, home: Path | None = None
) -> tuple[str, ...]:
    """The clouds that can be searched: those with credentials on this machine; with a SkyPilot server, all of them."""
    return tuple(each.cloud for each in find_credentials(clouds, environ, home) if each.location or environ.get(SERVER))
