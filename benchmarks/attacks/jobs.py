"""Hostile jobs on `local`: they search for secrets of the service; one tries to hang the reader of its log.

They run on a machine with other people's processes on it, and may be root where nothing holds them. So they look only
at processes and folders of the target, and for its own URL: nothing else is read, and nothing else could be used.
"""

from __future__ import annotations

import time

from mlcd_fixtures.postgres import PASSWORD

from attacks.target import CANARIES, Finding, Target, within

JOB = """\
name: {name}
run: |
{script}
mlcd: {{work: 100, budget: $5, on: local{more}, search: {{nodes: 1..1, instances: [medium]}}}}
"""
SEARCH = r"""
import glob, os, time
import mlcd_tracker
URL = bytes(byte ^ 1 for byte in MASKED)  # so that it stands in no command line or file of this job's own
found = []
def look(path, most=1 << 22):
    try:
        with open(path, "rb") as file:
            text = file.read(most)
    except OSError:
        return
    if URL in text:
        found.append(path)
def look_into_memory(process):
    try:
        maps = open(f"/proc/{process}/maps").read().splitlines()
        memory = open(f"/proc/{process}/mem", "rb")
    except OSError:
        return
    for line in maps:
        if "[heap]" not in line and "rw-p 00000000 00:00 0" not in line:
            continue
        first, last = (int(each, 16) for each in line.split()[0].split("-"))
        try:
            memory.seek(first)
            text = memory.read(min(last - first, 1 << 24))
        except (OSError, ValueError, OverflowError):
            continue
        if URL in text:
            found.append(f"/proc/{process}/mem")
            return
for process in set(PROCESSES) - {os.getpid()}:
    look(f"/proc/{process}/environ")
    look(f"/proc/{process}/cmdline")
    look_into_memory(process)
for pattern in PATTERNS:
    for path in glob.glob(pattern, recursive=True)[:2000]:
        if os.path.isfile(path):
            look(path, 1 << 16)
for where in found:
    print("FOUND", where, flush=True)
print("LOOKED", flush=True)
for _ in range(20):
    mlcd_tracker.step(5)
    time.sleep(0.1)
"""


def _python(script: str) -> str:
    lines = ["cat > hostile.py <<'END'", *script.strip().splitlines(), "END", "python3 hostile.py"]
    return "\n".join(f"  {line}" for line in lines)


def _ran(at: Target, name: str, script: str, seconds: float, marker: str) -> tuple[str, str]:
    """Run a job of mallory; returns its output once that contains the marker, or after a timeout."""
    answer = at.submit("mallory", JOB.format(name=name, script=script, more=""))
    answer.raise_for_status()
    run = str(answer.json()["run"])
    within(seconds, lambda: marker in at.output(run) or at.status(run) in ("failed", "infeasible"), 1.0)
    output = at.output(run)
    at.down(run)
    return run, output


def secrets_of_the_service(at: Target) -> Finding:
    """A job searches everything of the service for the database's URL, which would make its owner an admin."""
    given = {
        "MASKED": repr([byte ^ 1 for byte in at.database_url.encode()]),
        "PROCESSES": repr(at.processes()),
        "PATTERNS": repr([f"{at.home.parent}/**"]),
    }
    script = SEARCH
    for name, value in given.items():
        script = script.replace(name, value)
    run, output = _ran(at, "reader", _python(script), 120, "LOOKED")
    places = sorted({line.split()[1] for line in output.splitlines() if line.startswith("FOUND")})
    if places:
        return Finding(False, f"the database's URL, with which anybody is an admin, was in {places}")
    if "LOOKED" not in output:
        return Finding(False, f"the job of {run} did not get as far as looking: {output[-200:]!r}")
    return Finding(True, "in no environment, command line, memory or file of the service that a job can read")


def environment_of_the_service(at: Target) -> Finding:
    """A job prints its environment."""
    run, output = _ran(at, "printer", "  env; echo PRINTED; sleep 2", 120, "PRINTED")
    shown = [name for name, value in CANARIES.items() if value in output]
    if shown or PASSWORD in output:
        return Finding(False, f"the log of {run} has {', '.join(shown) or 'the password'}")
    if "PRINTED" not in output:
        return Finding(False, f"the job of {run} printed nothing: {output[-200:]!r}")
    return Finding(True, f"none of {', '.join(CANARIES)} in a job's environment")


def regular_expression(at: Target) -> Finding:
    """A regular expression that takes for ever on a line that the job writes; then a member ends the run."""
    script = "  for i in $(seq 60); do printf 'a%.0s' $(seq 48); echo '!'; sleep 0.2; done; echo step 1"
    pattern = r", report: '(?P<step>\d+)|(a+)+$'"
    answer = at.submit("mallory", JOB.format(name="regex", script=script, more=pattern))
    if answer.status_code == 422:
        return Finding(True, f"refused: {answer.json()['error'][:120]}")
    run = str(answer.json()["run"])
    within(60, lambda: "!" in at.output(run))
    began = time.monotonic()
    with at.client("mallory") as client:
        client.post(f"/runs/{run}/down")
    ended = within(120, lambda: at.status(run) in ("stopped", "failed", "infeasible", "decided"))
    took_s = time.monotonic() - began
    if not ended:
        return Finding(False, f"{run} is {at.status(run)} two minutes after it was to be taken down")
    return Finding(True, f"{run} was down after {took_s:.0f} s")
