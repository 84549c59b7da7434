"""The operators of an ONNX model, by ONNX Runtime's own profiler.

They are those that run, after its fusions: a batch normalisation that was folded into a convolution is not there. The
memory of an operator is that of its results (activations); what only looks at them in another shape takes none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mlcd.core.clock import Clock, WallClock
from mlcd.planners.serve.nouns import Operator, Profile
from mlcd.planners.serve.operators.onnx_feed import example_feed
from mlcd.planners.serve.operators.onnx_file import MB, OnnxModel
from mlcd.planners.serve.operators.onnx_session import open_session, told_on_one_line
from mlcd.planners.serve.operators.passes import Pass, added, typical

VIEWS = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"}
"""Results that are their input's memory under another shape."""
WARM_UP = 1
"""Passes that are not counted: the first one finds memory and fills caches."""

Event = Mapping[str, Any]


def profile_onnx(
    model: OnnxModel,
    batches: Sequence[int] = (8,),
    shapes: Mapping[str, int] | None = None,
    *,
    threads: int = 1,
    passes: int = 7,
    limit_s: float = 5.0,
    seed: int = 0,
    clock: Clock | None = None,
) -> tuple[Profile, ...]:
    """A profile at each batch: the median of some passes, on a fixed number of threads.

    No pass begins later than `limit_s` after the first one of its batch, but one is counted in any case.
    """
    clock = clock or WallClock(datetime.now(UTC))
    feeds = [example_feed(model, batch, shapes, seed) for batch in batches]
    with TemporaryDirectory(prefix="mlcd-operators-") as folder:
        session = open_session(model.path, threads, Path(folder) / "profile")
        with told_on_one_line(model.path):
            made = [_run(session, feed, passes, limit_s, clock) for feed in feeds]
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    found = iter(read_passes(events))
    each = [list(islice(found, count))[WARM_UP:] for count in made]
    return tuple(typical(batch, some, model.precision) for batch, some in zip(batches, each, strict=True))


def _run(session: Any, feed: Mapping[str, Any], passes: int, limit_s: float, clock: Clock) -> int:
    """Passes of one batch; how many there were."""
    start_s = clock.elapsed_s()
    for done in range(WARM_UP + passes):
        if done > WARM_UP and clock.elapsed_s() - start_s > limit_s:
            return done
        session.run(None, feed)
    return WARM_UP + passes


def read_passes(events: Iterable[Event]) -> list[Pass]:
    """The passes of a profile, in order: ONNX Runtime writes a 'model_run' around the nodes of each."""
    ordered = sorted((event for event in events if event.get("ph") == "X"), key=lambda event: event["ts"])
    whole = [event for event in ordered if event["name"] == "model_run"]
    nodes = [event for event in ordered if event["cat"] == "Node" and event["name"].endswith("_kernel_time")]
    found: list[Pass] = []
    for run in whole:
        inside = [node for node in nodes if run["ts"] <= node["ts"] < run["ts"] + run["dur"]]
        one: Pass = {}
        for node, own_us in zip(inside, own_times_us(inside), strict=True):
            one = added(one, _operator(node, own_us))
        found.append(one)
    return found


def own_times_us(nodes: Sequence[Event]) -> list[float]:
    """Each node's time less that of the nodes inside it: a loop's own is what its body does not take."""
    own = [float(node["dur"]) for node in nodes]
    around: list[int] = []
    for i, node in enumerate(nodes):
        while around and nodes[around[-1]]["ts"] + nodes[around[-1]]["dur"] < node["ts"] + node["dur"]:
            around.pop()
        if around:
            own[around[-1]] -= node["dur"]
        around.append(i)
    return [max(each, 0.0) for each in own]


def _operator(node: Event, own_us: float) -> Operator:
    """Fused kinds are told as what they mostly are: a 'FusedConv' is a convolution."""
    name = str(node["args"]["op_name"]).removeprefix("Fused")
    memory = 0.0 if name in VIEWS else float(node["args"].get("output_size", 0)) / MB
    return Operator(name, 1, own_us / 1e6, memory)
