"""Attacks that take more than a fair share of workers, memory, money or connections."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

from attacks.target import Finding, Target, within

EXHAUSTIVE = """\
name: greedy
run: "true"
mlcd:
  work: 1M
  goal: cheapest
  parameters: 25M
  flops_per_sample: 12G
  search: {method: exhaustive, nodes: 1..100}
"""
MODEST = """\
name: modest
run: "true"
mlcd:
  work: 1M
  goal: cheapest
  parameters: 25M
  flops_per_sample: 12G
  search: {nodes: 1..4, instances: [g4dn.xlarge, c5.4xlarge]}
"""
LOCAL = """\
name: race
run: sleep 1
mlcd: {work: 100, budget: $5, on: local, search: {nodes: 1..1, instances: [medium]}}
"""
MOST_MB = 1_500
"""Most memory that reading a small upload may take."""
CONNECTIONS = 300


def every_slot(at: Target) -> Finding:
    """Twelve endless searches, while another member wants to work."""
    greedy = [str(at.submit("mallory", EXHAUSTIVE).json()["run"]) for _ in range(12)]
    within(60, lambda: sum(at.status(run) == "searching" for run in greedy) >= 3)
    began = time.monotonic()
    run = str(at.submit("victor", MODEST).json()["run"])
    served = within(120, lambda: at.status(run) == "decided")
    took_s, busy = time.monotonic() - began, Counter(at.status(each) for each in greedy)
    for each in greedy:
        at.down(each)
    if not served:
        return Finding(False, f"victor's run is {at.status(run)} after {took_s:.0f} s; mallory's: {dict(busy)}")
    return Finding(True, f"victor's run was decided after {took_s:.0f} s; mallory's 12: {dict(busy)}")


def endless_queue(at: Target) -> Finding:
    """An excessive number of submissions."""
    statuses: Counter[int] = Counter()
    runs = []
    for _ in range(70):
        answer = at.submit("mallory", EXHAUSTIVE)
        statuses[answer.status_code] += 1
        if answer.status_code == 202:
            runs.append(str(answer.json()["run"]))
        else:
            line = str(answer.json()["error"])
            break
    for each in runs:
        at.down(each)
    if set(statuses) <= {202}:
        return Finding(False, f"all {statuses[202]} were taken")
    return Finding(True, f"refused after {statuses[202]}: {line}")


def upload_bomb(at: Target) -> Finding:
    """A model file of a few bytes that needs gigabytes to read."""
    from onnx import TensorProto, helper

    pair = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy"]
    size = helper.make_tensor("size", TensorProto.INT64, [1], [900_000_000])
    nodes = [
        helper.make_node("ConstantOfShape", ["size"], ["bomb"]),
        helper.make_node("ReduceMax", ["bomb"], ["most"], keepdims=0),
        helper.make_node("Add", ["x", "most"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", pair[:1], pair[1:], [size])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
    before_mb, peak_mb, over = _memory_mb(at), [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            peak_mb[0] = max(peak_mb[0], _memory_mb(at) - before_mb)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with at.client("mallory") as client:
        answer = client.post("/uploads", content=model, headers={"Content-Type": "application/octet-stream"})
    over.set()
    watcher.join()
    words = f"{len(model)} bytes took {peak_mb[0]:,.0f} MB and got {answer.status_code}: {answer.text[:120]}"
    return Finding(peak_mb[0] < MOST_MB and answer.status_code == 422, words)


def _memory_mb(at: Target) -> float:
    """Private memory of the service and all its processes."""
    total = 0
    for process in at.processes():
        with suppress(OSError):
            text = Path(f"/proc/{process}/smaps_rollup").read_text()
            total += sum(int(kb) for kb in re.findall(r"Private_\w+:\s+(\d+) kB", text))
    return total / 1024


def one_budget_many_starts(at: Target) -> Finding:
    """Fifty simultaneous submissions with a budget for one."""
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: at.submit("racer", LOCAL), range(50)))
    statuses = Counter(each.status_code for each in answers)
    for each in answers:
        if each.status_code == 202:
            at.down(str(each.json()["run"]))
    return Finding(statuses[202] <= 1 and set(statuses) <= {202, 409, 429}, f"of 50: {dict(statuses)}")


def slow_connections(at: Target) -> Finding:
    """Hundreds of connections with requests that never end."""
    host, port = at.address.removeprefix("http://").split(":")
    with ExitStack() as closing:
        slow = [closing.enter_context(socket.create_connection((host, int(port)), 10)) for _ in range(CONNECTIONS)]
        for each in slow:
            each.sendall(b"GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        began = time.monotonic()
        with at.client("victor") as client:
            statuses = [client.get("/runs").status_code for _ in range(5)]
        took_s = time.monotonic() - began
        closed = within(60, lambda: all(_is_closed(each) for each in slow), 2.0)
    words = f"5 answers in {took_s:.1f} s beside {CONNECTIONS} of them, which were {'' if closed else 'NOT '}closed"
    return Finding(statuses == [200] * 5 and took_s < 10 and closed, words)


def _is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while data := connection.recv(4096):
            del data
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True
