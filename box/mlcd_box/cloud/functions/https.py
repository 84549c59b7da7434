"""Serves lambda.REGION.amazonaws.com in a box: Lithops calls functions by that name, whatever endpoint is configured.

In the box, /etc/hosts resolves these names to the cloud, and botocore trusts its certificate.
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
    """Serve these names. The mounts are visible only in the box."""
    names = [f"lambda.{region}.amazonaws.com" for region in REGIONS]
    key, certificate = box / "lambda.key", box / "lambda.pem"
    self_signed = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=box"]
    for_names = ["-addext", "subjectAltName=" + ",".join(f"DNS:{name}" for name in names)]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*self_signed, *for_names, *files], check=True, capture_output=True)
    _append_in_box(Path("/etc/hosts"), f"\n{address} {' '.join(names)}\n", box / "hosts")
    _append_in_box(Path(certifi.where()), "\n" + certificate.read_text(), box / "trusted.pem")
    server = make_server(address, HTTPS, application, threaded=True, ssl_context=(str(certificate), str(key)))
    threading.Thread(target=server.serve_forever, daemon=True).start()


def _append_in_box(file: Path, text: str, copy: Path) -> None:
    """Append text to a file, only as seen in the box: a changed copy is mounted over it."""
    copy.write_text(file.read_text() + text)
    subprocess.run(["mount", "--bind", str(copy), str(file.resolve())], check=True)
