"""Attacks on features for operators: metrics, the log, workers, the audit log, tokens for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import httpx

from attacks.overuse import MODEST
from attacks.target import Finding, Target

MADE_UP = 300
FORGED = '"},{"level":"info","member":"admin"}\n{"level":"info","member":"admin","status":200}\r\n'
WRONG = "mlcd_" + "W" * 43


def metrics_without_a_token(at: Target) -> Finding:
    """Read the metrics without a token, with a wrong one, or with another Host; search health checks for secrets."""
    shown = []
    with at.client(None) as client:
        for path in (
            "/metrics",
            "/metrics/",
            "/metrics/x",
            "//metrics",
            "/%6detrics",
            "/METRICS",
            "/healthz/../metrics",
        ):
            answer = client.get(f"{at.address}{path}")
            if "mlcd_runs" in answer.text:
                shown.append(path)
        wrong = client.get(f"{at.address}/metrics", headers={"Authorization": f"Bearer {WRONG}"})
        open_ones = client.get(f"{at.address}/healthz").text + client.get(f"{at.address}/readyz").text
    leaks = [secret for secret in at.secrets if secret in open_ones]
    words = f"shown by {shown}; a wrong token: {wrong.status_code}; probes tell {open_ones[:80]}"
    return Finding(not shown and wrong.status_code == 401 and not leaks, words)


def endless_metrics(at: Target) -> Finding:
    """Unknown paths, methods and names, each of which might become its own time series."""
    with at.client("mallory") as client:
        before = _series(at)
        for number in range(MADE_UP):
            client.get(f"/runs/made-up-{number}")
            client.request(f"MADEUP{number}", f"/made-up/{number}")
        after = _series(at)
    words = f"{before} series before {2 * MADE_UP} made-up requests, {after} after"
    return Finding(after - before < MADE_UP / 3, words)


def _series(at: Target) -> int:
    with at.client("victor") as client:
        return client.get(f"{at.address}/metrics").text.count("\n")


def forged_log_lines(at: Target) -> Finding:
    """Line breaks and JSON in paths, numbers and tokens, to forge log lines; tokens in URLs, to get them logged."""
    with at.client(None) as client:
        for text in (FORGED, f"{FORGED}{at.tokens['mallory']}"):
            client.get(f"/runs/{_quoted(text)}", headers={"Authorization": f"Bearer {at.tokens['mallory']}"})
            client.get(
                f"{at.address}/{_quoted(text)}", headers={"X-Request-ID": text.replace("\n", "").replace("\r", "")}
            )
            client.get("/me", headers={"Authorization": f"Bearer {WRONG}"})
    log = at.log.read_text()
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    forged = [each for each in lines if each.get("member") == "admin" and "logger" not in each]
    kept = [name for name, token in at.tokens.items() if name != "admin" and token in log] + ([WRONG] * (WRONG in log))
    told = sum(each.get("status") == 401 for each in lines)
    return Finding(
        not forged and not kept and told > 0, f"{len(lines)} lines, {told} of them refused tokens; kept: {kept}"
    )


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def audit_of_others(at: Target) -> Finding:
    """A runner reads or downloads the audit log."""
    with at.client("mallory") as client:
        statuses = {
            path: client.get(path).status_code
            for path in (
                "/audit",
                "/audit?who=admin",
                "/audit/export",
                "/audit/export?format=jsonl",
                "/members",
                "/teams",
            )
        }
    return Finding(set(statuses.values()) == {403}, str(statuses))


def news_to_anywhere(at: Target) -> Finding:
    """A runner makes the service send requests or mail to any address, or changes an admin's settings."""
    ours = {"kind": "json", "address": "http://127.0.0.1:1/", "own": False}
    with at.client("admin") as client:
        number = client.post("/news", json=ours).json()["number"]
    asked: list[tuple[str, str, dict[str, object]]] = [
        ("POST", "/news", ours),
        ("POST", "/news", {**ours, "own": True}),
        ("POST", "/news", {**ours, "kind": "slack", "address": "http://169.254.169.254/", "own": True}),
        ("POST", "/news", {"kind": "mail", "address": "x@x.org\r\nBcc: all@x.org"}),
        ("POST", "/news", {"kind": "mail", "address": "x@x.org", "member": "admin"}),
        ("POST", "/news", {"kind": "mail", "address": "x@x.org", "team": "everybody", "own": False}),
        ("POST", f"/news/{number}/test", {}),
        ("DELETE", f"/news/{number}", {}),
    ]
    with at.client("mallory") as client:
        answers = [client.request(method, path, json=body) for method, path, body in asked]
        seen = client.get("/news").json()["receivers"]
    with at.client("admin") as client:
        left = client.delete(f"/news/{number}").status_code
    statuses = [each.status_code for each in answers]
    held = not any(each.is_success for each in answers) and not seen and left == 204
    return Finding(held, f"refused with {statuses}; seen of others: {seen}; the admin's is still there: {left == 204}")


def tokens_that_grow(at: Target) -> Finding:
    """A read-only token tries to get more rights, to sign in, or to write; an expired token is used."""
    with at.client("mallory") as client:
        made = client.post("/tokens", json={"name": "leaked", "scope": "read"}).json()["token"]
        routes = client.get("/openapi.json").json()["paths"]
        others = client.delete("/tokens/main"), client.post("/tokens/..%2fmembers/rotate")
    passed = [f"{method} {path}" for method, path, answer in _by_every_route(at, made, routes) if answer.is_success]
    with httpx.Client(base_url=f"{at.address}/api/v1", timeout=60) as stranger:
        signed = stranger.post("/session", json={"token": made}, headers={"X-MLCD": "1"}).status_code
    with at.client("mallory") as client:
        client.delete("/tokens/leaked")
    header = {"Authorization": f"Bearer {made}"}
    with at.client(None) as client:
        after = client.get("/runs", headers=header).status_code
    statuses = [each.status_code for each in others]
    words = f"passed: {passed}; signing in: {signed}; after its end: {after}; tokens of others: {statuses}"
    return Finding(not passed and signed == 403 and after == 401 and not {200, 201, 204} & set(statuses), words)


def _by_every_route(
    at: Target, token: str, routes: dict[str, dict[str, object]]
) -> Iterator[tuple[str, str, httpx.Response]]:
    bodies = {"/runs": {"kind": "train", "job": MODEST}, "/tokens": {"name": "more", "scope": "run"}}
    with at.client(None) as client:
        for path, methods in routes.items():
            where = path.removeprefix("/api/v1")
            for method in methods:
                if method == "get" or (method, where) == ("post", "/session"):
                    continue
                known = re.sub(r"\{\w+\}", "leaked", where)
                yield (
                    method,
                    path,
                    client.request(
                        method.upper(), known, json=bodies.get(where, {}), headers={"Authorization": f"Bearer {token}"}
                    ),
                )
