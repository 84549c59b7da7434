"""Runs on a machine of AWS and sets that its own shutdown terminates it.

Otherwise a shutdown only stops it, and its disk is billed until somebody deletes it. It needs nothing but
Python and the role that SkyPilot gives to its machines (autostop needs it, too). It is run at the first boot, when
nothing else is installed, and once more with the files of the launch. Usage: terminate.py [TRIES]
"""

from __future__ import annotations  # the system's Python may be as old as 2019

import hashlib
import hmac
import json
import os
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping

ADDRESS = "169.254.169.254"
METADATA = f"http://{ADDRESS}/latest"
"""EC2's instance metadata service."""
TIMEOUT_S = 5.0
PAUSE_S = 6.0
"""Between two tries: right after its start, a machine may not have its role or its network yet."""


def ask(url: str, headers: Mapping[str, str], method: str = "GET", body: str | None = None) -> str:
    """Send a request and return the text of the answer."""
    data = None if body is None else body.encode()
    request = urllib.request.Request(url, data, dict(headers), method=method)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        return str(answer.read().decode())


def terminate_on_shutdown(ask: Callable[..., str], endpoint: str, at: str) -> None:
    """Set that a shutdown from within terminates this machine. `endpoint`: AWS's address, empty for the default one."""
    token = ask(f"{METADATA}/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}, "PUT")

    def about(path: str) -> str:
        return ask(f"{METADATA}/meta-data/{path}", {"X-aws-ec2-metadata-token": token})

    region, role = about("placement/region"), about("iam/security-credentials/").split()[0]
    parameters = {
        "Action": "ModifyInstanceAttribute",
        "Attribute": "instanceInitiatedShutdownBehavior",
        "InstanceId": about("instance-id"),
        "Value": "terminate",
        "Version": "2016-11-15",
    }
    url, body = endpoint.rstrip("/") or f"https://ec2.{region}.amazonaws.com", urllib.parse.urlencode(parameters)
    keys, host = json.loads(about(f"iam/security-credentials/{role}")), urllib.parse.urlsplit(url).netloc
    ask(f"{url}/", signed(keys, region, host, body, at), "POST", body)


def signed(keys: Mapping[str, str], region: str, host: str, body: str, at: str) -> dict[str, str]:
    """The headers of a request to EC2 with AWS Signature Version 4. `at`: 20260801T120000Z."""
    headers = {
        "content-type": "application/x-www-form-urlencoded; charset=utf-8",
        "host": host,
        "x-amz-date": at,
        "x-amz-security-token": keys["Token"],
    }
    names, lines = ";".join(headers), [f"{name}:{value}" for name, value in headers.items()]
    request = "\n".join(["POST", "/", "", *lines, "", names, _sha256(body)])
    day_to_service = (at[:8], region, "ec2", "aws4_request")
    scope, key = "/".join(day_to_service), f"AWS4{keys['SecretAccessKey']}".encode()
    for part in (*day_to_service, "\n".join(["AWS4-HMAC-SHA256", at, scope, _sha256(request)])):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    by = f"Credential={keys['AccessKeyId']}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
    return {**headers, "authorization": f"AWS4-HMAC-SHA256 {by}"}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    os.environ["no_proxy"] = f"{os.environ.get('no_proxy', '')},{ADDRESS}"
    for tries_left in reversed(range(int("".join(sys.argv[1:2]) or 1))):
        try:
            now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
            terminate_on_shutdown(ask, os.environ.get("AWS_ENDPOINT_URL", ""), now)
            break
        except Exception:  # of any type: AWS may throttle, or the machine's role is not there yet
            if not tries_left:
                raise
            time.sleep(PAUSE_S)
