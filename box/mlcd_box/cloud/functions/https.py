"""lambda.REGION.amazonaws.com in a box: Lithops calls functions at that name, whatever endpoint is configured.

The names lead to the cloud, by the box's own /etc/hosts; its certificate is among those that botocore trusts there.
"""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from typing import Any

import certifi
from werkzeug.serving import make_server

from mlcd_box.offers import REGIONS

HTTPS = 443


def serve_by_name(box: Path, address: str, application: Any) -> None:
    """Answer at these names. The mounts are seen in the box alone."""
    names = [f"lambda.{region}.amazonaws.com" for region in REGIONS]
    key, certificate = box / "lambda.key", box / "lambda.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=box"]
    named = ["-addext", "subjectAltName=" + ",".join(f"DNS:{name}" for name in names)]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *named, *files], check=True, capture_output=True)
    _cover(Path("/etc/hosts"), f"\n{address} {' '.join(names)}\n", box / "hosts")
    _cover(Path(certifi.where()), "\n" + certificate.read_text(), box / "trusted.pem")
    server = make_server(address, HTTPS, application, threaded=True, ssl_context=(str(certificate), str(key)))
    threading.Thread(target=server.serve_forever, daemon=True).start()


def _cover(file: Path, more: str, beside: Path) -> None:
    """Let this file, in the box, be what it is outside and some more."""
    beside.write_text(file.read_text() + more)
    subprocess.run(["mount", "--bind", str(beside), str(file.resolve())], check=True)
