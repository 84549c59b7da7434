"""Forged requests, and a database outage."""

from __future__ import annotations

import re
import time
from pathlib import Path
from urllib.parse import urlsplit

from mlcd_fixtures.postgres import PASSWORD

from attacks.overuse import MODEST
from attacks.target import Finding, Target, within

ELSEWHERE = "https://evil.example"
SQL = ("x' OR '1'='1", "'; DROP TABLE members; --", "1 UNION SELECT token_hash FROM members", "%27%3B--")
PATHS = ("../../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "....//....//etc/passwd")


def other_sites(at: Target) -> Finding:
    """A page of another site uses the session of a signed-in member (CSRF)."""
    with at.client(None) as client:
        signed = client.post("/session", json={"token": at.tokens["victor"]}, headers={"X-MLCD": "1"})
        cookie = signed.headers.get("set-cookie", "")
        body = {"kind": "train", "job": MODEST}
        tries = {
            "another origin": {"Origin": ELSEWHERE, "X-MLCD": "1"},
            "no header of ours": {},
            "a form": {"Content-Type": "text/plain"},
            "cross-site": {"Sec-Fetch-Site": "cross-site", "X-MLCD": "1"},
        }
        statuses = {
            name: client.post("/runs", json=body, headers=headers).status_code for name, headers in tries.items()
        }
    strict = "samesite=strict" in cookie.lower() and "httponly" in cookie.lower()
    words = f"{statuses}; the cookie is {'' if strict else 'NOT '}strict"
    return Finding(strict and all(status in (403, 415) for status in statuses.values()), words)


def scripts_in_names(at: Target) -> Finding:
    """A job whose name is a script, for readers of its page (XSS)."""
    script = "<script>alert(document.cookie)</script>"
    answer = at.submit("mallory", MODEST.replace("name: modest", f"name: '{script}'"))
    with at.client("mallory") as client:
        runs = client.get("/runs")
        page = client.get(f"{at.address}/")
    policy = page.headers.get("content-security-policy", "")
    if answer.status_code == 202:
        run = str(answer.json()["run"])
        within(60, lambda: at.status(run) in ("decided", "infeasible"))
        with at.client("mallory") as client:
            report = client.get(f"/runs/{run}/report")
        if script in report.text:
            return Finding(False, f"the report of {run} has the script in it")
    scripts = re.search(r"script-src ([^;]*)", policy) or re.search(r"default-src ([^;]*)", policy)
    safe = scripts is not None and "unsafe-inline" not in scripts[1] and "*" not in scripts[1]
    typed = runs.headers["content-type"].startswith("application/json")
    sniffed = runs.headers.get("x-content-type-options") != "nosniff"
    words = f"submitting it: {answer.status_code}; scripts of pages: {scripts[1] if scripts else 'any'}"
    return Finding(safe and typed and not sniffed, words)


def sql_in_names(at: Target) -> Finding:
    """SQL in every name."""
    statuses = set()
    with at.client("mallory") as client:
        for text in SQL:
            statuses.add(client.get(f"/runs/{text}").status_code)
            statuses.add(client.get("/runs", params={"owner": text, "text": text}).status_code)
            statuses.add(client.get("/runs", params={"order": text}).status_code)
            statuses.add(client.post("/runs", json={"kind": text, "job": MODEST}).status_code)
    with at.client("admin") as client:
        names = {each["name"] for each in client.get("/members").json()["members"]}
    words = f"answers {sorted(statuses)}; the members are still {', '.join(sorted(names))}"
    return Finding(500 not in statuses and {"admin", "mallory", "victor"} <= names, words)


def paths_in_names(at: Target) -> Finding:
    """File paths of the service's machine in every name."""
    shown = []
    with at.client("mallory") as client:
        for path in PATHS:
            for where in (
                f"/runs/{path}",
                f"/runs/{path}/report",
                f"/runs/{path}/job",
                f"{at.address}/assets/{path}",
                f"{at.address}/{path}",
            ):
                answer = client.get(where)
                if "root:" in answer.text:
                    shown.append(where)
        for on in ("recorded:/etc", "local:/etc/passwd", "ray:/etc/passwd"):
            answer = client.post("/runs", json={"kind": "train", "job": MODEST, "options": {"on": on}})
            if answer.status_code == 202:
                shown.append(on)
        mounted = MODEST + "  on: local\nfile_mounts: {/tmp/here: /etc}\nworkdir: /etc\n"
        if client.post("/runs", json={"kind": "train", "job": mounted}).status_code == 202:
            shown.append("workdir: /etc")
    return Finding(not shown, f"taken: {shown}" if shown else f"{4 * len(PATHS) + 4} paths, none was followed")


def database_away(at: Target) -> Finding:
    """The database is killed: do answers leak anything, and does the service recover?"""
    parts = urlsplit(at.database_url)
    hidden = [PASSWORD, "postgresql:", f"{parts.username}@", f"{parts.hostname}:{parts.port}", parts.path[1:]]
    with at.client("mallory") as client:
        routes = client.get("/openapi.json").json()["paths"]
        at.postgres.kill()
        within(30, lambda: client.get("/health").status_code == 503)
        leaks, statuses = [], set()
        for path, methods in routes.items():
            for method in methods:
                if "events" in path:
                    continue
                answer = client.request(method.upper(), re.sub(r"\{\w+\}", "x", path.removeprefix("/api/v1")), json={})
                statuses.add(answer.status_code)
                leaks += [f"{method} {path}" for secret in hidden if secret in answer.text]
        at.postgres.start()
        began = time.monotonic()
        back = within(60, lambda: client.get("/runs").status_code == 200 and client.get("/health").json().get("ok"))
    if leaks:
        return Finding(False, f"the URL stands in {sorted(set(leaks))}")
    logged = PASSWORD in Path(at.log).read_text()
    words = f"answers {sorted(statuses)} without its URL; back after {time.monotonic() - began:.0f} s"
    return Finding(back and 500 not in statuses and not logged, words if back else "it did not come back within 60 s")
