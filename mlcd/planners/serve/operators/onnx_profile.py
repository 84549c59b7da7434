"""Facts about a model before the first trial: size, family, kind of input, and profiles of its operators.

Profiled are the operators that run, after fusion: a batch normalisation fused into a convolution does not appear. The
memory of an operator is that of its outputs (activations); views take none.

Key operators (KOPs) are those with at least 5 % of a model's computing time or of its memory: Wu et al., 'Serving
Unseen Deep Learning Models with Near-Optimal Configurations' (Falcon), SoCC 2022, section 3.1. Table 3 compares 1, 5
and 10 %. Algorithm 1 visits them by the mean of both shares, largest first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from mlcd.core.clock import Clock, WallClock
from mlcd.planners.serve.model_facts import ModelFacts, Operator, Profile
from mlcd.planners.serve.operators.onnx_file import MB, OnnxModel, open_model
from mlcd.planners.serve.operators.onnx_session import example_feed, open_session, runtime_errors

KEY_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Part:
    """An operator's shares of a pass's time and memory (0 to 1), and whether it is a key operator."""

    operator: Operator
    time_share: float
    memory_share: float
    key: bool


def parts(profile: Profile, threshold: float = KEY_SHARE) -> tuple[Part, ...]:
    """All operators of a pass, in the profile's order. One that frees more memory than it takes counts as 0."""
    seconds = profile.seconds or 1.0
    held_mb = sum(max(each.memory_mb, 0.0) for each in profile.operators) or 1.0
    shares = [(each, each.seconds / seconds, max(each.memory_mb, 0.0) / held_mb) for each in profile.operators]
    return tuple(Part(each, time, memory, max(time, memory) >= threshold) for each, time, memory in shares)


def key_operators(profile: Profile, threshold: float = KEY_SHARE) -> tuple[str, ...]:
    """The names of the key operators, largest shares first."""
    ranked = sorted(parts(profile, threshold), key=lambda part: -(part.time_share + part.memory_share))
    return tuple(part.operator.name for part in ranked if part.key)


Pass = Mapping[str, Operator]
"""The operators of one forward pass, by name."""


def added(one: Pass, operator: Operator) -> Pass:
    """The pass with another call of an operator added."""
    known = one.get(operator.name, Operator(operator.name, 0, 0.0))
    calls, seconds = known.calls + operator.calls, known.seconds + operator.seconds
    return {**one, operator.name: Operator(operator.name, calls, seconds, known.memory_mb + operator.memory_mb)}


def typical(batch: int, passes: Sequence[Pass], precision: str = "fp32") -> Profile:
    """The median of several passes, slowest operators first.

    The median is taken for each operator, not over whole passes: an interruption affects one operator, rarely the same.
    """
    operators = []
    for name in {name for one in passes for name in one}:
        calls = [one[name] for one in passes if name in one]
        seconds, memory_mb = median(each.seconds for each in calls), median(each.memory_mb for each in calls)
        operators.append(Operator(name, calls[-1].calls, seconds, memory_mb))
    return Profile(batch, tuple(sorted(operators, key=lambda each: (-each.seconds, each.name))), precision)


VIEWS = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"}
"""Operators whose output shares the memory of their input."""
WARM_UP = 1
"""Passes that are dropped: the first one allocates memory and fills caches."""

Event = Mapping[str, Any]


def profile_onnx(
    model: OnnxModel,
    batches: Sequence[int] = (8,),
    shapes: Mapping[str, int] | None = None,
    *,
    passes: int = 7,
    limit_s: float = 5.0,
    clock: Clock | None = None,
) -> tuple[Profile, ...]:
    """Profile the model at each batch size: the median of several passes on one thread.

    No pass starts later than `limit_s` after the first of its batch size, but at least one is counted.
    """
    clock = clock or WallClock(datetime.now(UTC))
    feeds = [example_feed(model, batch, shapes) for batch in batches]
    with TemporaryDirectory(prefix="mlcd-operators-") as folder:
        session = open_session(model.path, profile_to=Path(folder) / "profile")
        with runtime_errors(model.path):
            made = [_run(session, feed, passes, limit_s, clock) for feed in feeds]
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    all_passes = iter(read_passes(events))
    each = [list(islice(all_passes, count))[WARM_UP:] for count in made]
    return tuple(typical(batch, some, model.precision) for batch, some in zip(batches, each, strict=True))


def _run(session: Any, feed: Mapping[str, Any], passes: int, limit_s: float, clock: Clock) -> int:
    """Run the passes of one batch size; return how many."""
    start_s = clock.elapsed_s()
    for done in range(WARM_UP + passes):
        if done > WARM_UP and clock.elapsed_s() - start_s > limit_s:
            return done
        session.run(None, feed)
    return WARM_UP + passes


def read_passes(events: Iterable[Event]) -> list[Pass]:
    """The passes in a profile, in order: ONNX Runtime writes a 'model_run' event around the nodes of each."""
    ordered = sorted((event for event in events if event.get("ph") == "X"), key=lambda event: event["ts"])
    whole = [event for event in ordered if event["name"] == "model_run"]
    nodes = [event for event in ordered if event["cat"] == "Node" and event["name"].endswith("_kernel_time")]
    passes: list[Pass] = []
    for run in whole:
        inside = [node for node in nodes if run["ts"] <= node["ts"] < run["ts"] + run["dur"]]
        one: Pass = {}
        for node, own_us in zip(inside, own_times_us(inside), strict=True):
            one = added(one, _operator(node, own_us))
        passes.append(one)
    return passes


def own_times_us(nodes: Sequence[Event]) -> list[float]:
    """Each node's time without that of the nodes inside it: a loop's own time excludes its body."""
    own = [float(node["dur"]) for node in nodes]
    enclosing: list[int] = []
    for i, node in enumerate(nodes):
        while enclosing and nodes[enclosing[-1]]["ts"] + nodes[enclosing[-1]]["dur"] < node["ts"] + node["dur"]:
            enclosing.pop()
        if enclosing:
            own[enclosing[-1]] -= node["dur"]
        enclosing.append(i)
    return [max(each, 0.0) for each in own]


def _operator(node: Event, own_us: float) -> Operator:
    """A fused kind counts as its main operator: a 'FusedConv' is a convolution."""
    name = str(node["args"]["op_name"]).removeprefix("Fused")
    memory = 0.0 if name in VIEWS else float(node["args"].get("output_size", 0)) / MB
    return Operator(name, 1, own_us / 1e6, memory)


BATCHES = (8, 64)
"""The batch sizes at which the models of the knowledge bases were profiled."""

_RECURRENT = {"LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"}
_GROWING = {"ConvTranspose", "Resize", "Upsample", "DepthToSpace"}
_CONVOLUTIONS = {"Conv", "ConvInteger", "QLinearConv"}


def facts_of(path: Path | str, shapes: Mapping[str, int] | None = None, batches: Sequence[int] = BATCHES) -> ModelFacts:
    """The facts of a model: read its file, and profile it at each batch size."""
    model = open_model(path)
    if model.batch is not None:
        batches = (model.batch,)
    return ModelFacts(
        name=model.path.stem,
        family=family(model),
        inputs=kind_of_input(model, shapes or {}),
        weights_mb=model.weights_mb,
        parameters=model.parameters / 1e9,
        profiles=profile_onnx(model, batches, shapes),
    )


def family(model: OnnxModel) -> str:
    """Guess the family from the operators: 'rnn', 'transformer', 'gan', 'recsys', 'cnn'; '' if unknown."""
    kinds = set(model.operators)
    if kinds & _RECURRENT:
        return "rnn"
    if model.attends:
        return "transformer"
    if kinds & _GROWING and _image_size(model) is None:
        return "gan"
    if kinds & _CONVOLUTIONS:
        return "cnn"
    return "recsys" if any(each.rows is not None for each in model.inputs) else ""


def kind_of_input(model: OnnxModel, shapes: Mapping[str, int]) -> str:
    """Guess the kind of input from the shapes: 'image224', 'tokens128'; '' if its preparation is trivial or unknown."""
    size = _image_size(model, shapes)
    if size is not None:
        return f"image{size}" if size else ""
    if family(model) in ("rnn", "transformer"):
        for each in model.inputs:
            if each.rows is not None and len(each.shape) == 2:
                length = each.shape[1]
                known = length if isinstance(length, int) else shapes.get(length)
                return f"tokens{known}" if known else ""
    return ""


def _image_size(model: OnnxModel, shapes: Mapping[str, int] | None = None) -> int | None:
    """The longer side of an image input (batch, channels, height, width); 0 if it is free."""
    for each in model.inputs:
        if len(each.shape) == 4 and each.rows is None:
            sides = [side if isinstance(side, int) else (shapes or {}).get(side, 0) for side in each.shape[1:]]
            channels_first = sides[0] in (1, 3, 4) or sides[-1] not in (1, 3, 4)
            longer = max(sides[1:] if channels_first else sides[:-1])
            if longer != 1:  # a generator's noise may be a 1 x 1 image
                return longer
    return None
