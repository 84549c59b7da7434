"""What one GPU holds while a language model is trained by a plan: the tensors, by what they are for.

Symbols   P    parameters of the fullest pipeline stage   T    those of them that are trained     b   bytes of a number
          t    tokens that a rank takes at once           h, f, V   widths: layer, feed-forward, vocabulary
          L    layers of a stage                          m    micro-batches that it holds at once (1F1B: at most pp)

    weights      b P; four bits where quantized; a copy in the precision of the arithmetic under autocast; over the
                 data-parallel ranks with zero3, less the layers that are gathered just then
    gradients    b T, sharded by zero2 and zero3. They are freed between steps: without accumulation they are not there
                 yet when activations are the most
    optimizer    2 b T: the moments of Adam, sharded likewise
    update       b T: temporary copies of an optimizer that goes over all tensors at once
    saved        activations that wait for the backward pass: m L t (norms + attention + feed-forward) numbers
    stream       with checkpoints, what waits instead: m L t h
    logits       12 bytes t V: in 16 bits, in fp32, the logarithm of their softmax; the gradient takes their place
    layer        what is computed again or differentiated just then: one layer; and the gradient of the output layer

Tensor parallelism with sequence parallelism divides all of it. Of experts that ranks divide among them, only those
ranks shard that have the same: data-parallel ranks over expert parallelism. Korthikanti et al., 'Reducing Activation
Recomputation in Large Transformer Models' (2022) counts activations so; the numbers here are of Hugging Face models,
from profiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.train.nouns import Adapter, Checkpointing, Precision, Sharding, TrainingPlan
from mlcd.planners.train.plans.run_spec import CPU, RunSpec

PURE = {Precision.PURE_BF16: 2.0, Precision.PURE_FP16: 2.0, Precision.FP32: 4.0}
"""Bytes of a weight where all is kept as it is multiplied."""
QUANTIZED = (Adapter.QLORA, Adapter.GPTQ_LORA)
QUANTIZED_BYTES = 0.5625
"""Of a weight in four bits, with a scale for every 64."""
LOGIT_BYTES = 12.0
KEPT = {Checkpointing.NONE: 1.0, Checkpointing.SELECTIVE: 0.35, Checkpointing.FULL: 0.0}
"""Of the activations of a layer; with full checkpointing, its input alone."""
AUTOCAST = 1.2
"""Autocast keeps norms, the residual stream and what it cast beside each other."""
PROCESS_GB = 0.6
"""Of a CUDA context with its libraries; a Python process with PyTorch takes as much on a CPU."""
CONNECTED_GB = 0.8
"""Of the buffers that GPUs exchange through (NCCL)."""
GIB = 1.073741824
"""GB in a GiB, which GPU memory is counted in."""
GATHERED_LAYERS = 2
"""That zero3 holds in full: the one in use, the next one."""
FUSED = ("flash", "sdpa", "xformers", "memory_efficient")
"""Words of attention that never writes down a score for each pair of tokens."""
SCORE_BYTES = 5.0
"""For each score, where they are written down: 16 bits before and after the softmax, and a mask."""


@dataclass(frozen=True, slots=True)
class Needed:
    """GB (10^9 bytes) on a GPU of one pipeline stage. `plain`: of `saved`, feed-forward layers without a gate.

    `layer`, `layer_plain`, `head`: what is in work, of one layer and of the output layer. `framework`: what is taken
    beside tensors. `held`: whether gradients are there while activations are the most.
    """

    weights: float
    gradients: float
    optimizer: float
    update: float
    stream: float
    saved: float
    plain: float
    logits: float
    layer: float
    layer_plain: float
    head: float
    framework: float
    held: bool

    @property
    def activations(self) -> float:
        """The most that the forward and backward pass hold at once."""
        return self.stream + self.saved + self.plain + max(self.logits, self.layer + self.layer_plain + self.head)

    @property
    def allocated(self) -> float:
        """The most that tensors take at any time, as far as sizes alone tell."""
        beside = self.gradients if self.held else 0.0
        return self.weights + self.optimizer + max(self.gradients + self.update, beside + self.activations)

    @property
    def total(self) -> float:
        """With what is taken beside tensors."""
        return self.allocated + self.framework

    def __str__(self) -> str:
        state = f"weights {self.weights:.1f}, gradients {self.gradients:.1f}, optimizer {self.optimizer:.1f}"
        return f"{self.total:.1f} GB ({state}, activations {self.activations:.1f})"


def needed_gb(spec: RunSpec) -> Needed:
    """Of a training run that could be, on its fullest GPU."""
    return max(stages_gb(spec), key=lambda stage: stage.total)


def stages_gb(spec: RunSpec) -> tuple[Needed, ...]:
    """Of its first pipeline stage, which holds most micro-batches, and of its last, which has the logits."""
    last = _stage(spec, last=True)
    return (last,) if spec.plan.pipeline == 1 else (_stage(spec, last=False), last)


def room_gb(spec: RunSpec) -> float:
    """Of a GPU, or of a machine without one, whose own system takes the rest: 10^9 bytes."""
    return spec.gpu.memory_gb * (1.0 if spec.gpu.name == CPU else GIB)


def _stage(spec: RunSpec, last: bool) -> Needed:
    plan, sizes = spec.plan, spec.architecture
    parameters = _parameters(spec)
    full = plan.adapter is Adapter.FULL
    trained = parameters if full else _Parameters(spec.trainable / (plan.tensor * plan.pipeline), 0.0)
    number = _number(plan)
    gradients = number * (trained.all if plan.sharding is Sharding.NONE else _over_ranks(trained, spec))
    tokens = plan.micro_batch * spec.sequence / (plan.context * plan.tensor)
    waiting = 1.0 if last else min(float(plan.pipeline), spec.accumulation)
    kept = tokens * waiting * sizes.layers / plan.pipeline
    rest, plain = _layer(spec)
    share = KEPT[plan.checkpointing]
    stream = 0.0 if share else _stream_bytes(plan) * sizes.hidden
    head = 2.0 * sizes.vocab * sizes.hidden / plan.tensor if last and full else 0.0
    return Needed(
        weights=_weights(spec, parameters, trained) / 1e9,
        gradients=gradients / 1e9,
        optimizer=2 * gradients / 1e9,
        update=gradients / 1e9,
        stream=kept * stream / 1e9,
        saved=kept * share * rest / 1e9,
        plain=kept * share * plain / 1e9,
        logits=tokens * LOGIT_BYTES * sizes.vocab / 1e9 if last else 0.0,
        layer=tokens * rest / 1e9,
        layer_plain=tokens * plain / 1e9,
        head=head / 1e9,
        framework=PROCESS_GB + (CONNECTED_GB if spec.gpus > 1 else 0.0),
        held=spec.accumulation > 1,
    )


def _number(plan: TrainingPlan) -> float:
    """Bytes in which what is trained is kept."""
    return PURE.get(plan.precision, 4.0)


def _stream_bytes(plan: TrainingPlan) -> float:
    """Of a number that goes from one layer to the next."""
    return 4.0 if plan.precision is Precision.FP32 or _autocast(plan) else 2.0


def _autocast(plan: TrainingPlan) -> bool:
    """Whether each operation is cast by itself. Who shards casts whole layers beforehand."""
    return plan.precision not in PURE and plan.sharding is Sharding.NONE


@dataclass(frozen=True, slots=True)
class _Parameters:
    """Of a stage, on one GPU before sharding. Of `experts` only so many ranks have the same as expert parallelism
    leaves."""

    common: float
    experts: float

    @property
    def all(self) -> float:
        return self.common + self.experts


def _parameters(spec: RunSpec) -> _Parameters:
    """P of the fullest stage."""
    plan, sizes = spec.plan, spec.architecture
    whole = 1e9 * sizes.params_b
    table = min(whole, float(sizes.vocab * sizes.hidden))
    ends = table * (2 if plan.pipeline == 1 and not tied(sizes) else 1)
    both = table * (1 if tied(sizes) else 2)
    experts = min(_expert_parameters(sizes), max(0.0, whole - both))
    body = (whole - both - experts) / plan.pipeline
    return _Parameters((max(body, 0.0) + ends) / plan.tensor, experts / plan.expert / plan.pipeline / plan.tensor)


def _over_ranks(size: _Parameters, spec: RunSpec) -> float:
    """What a rank keeps where all ranks that have the same keep a part of it each."""
    ranks = spec.data_parallel * spec.plan.context
    return size.common / ranks + size.experts / max(1.0, ranks / spec.plan.expert)


def _weights(spec: RunSpec, parameters: _Parameters, trained: _Parameters) -> float:
    """Bytes of weights on a rank at most: what stays there, copies for the arithmetic, layers that were gathered."""
    plan, sizes, ranks = spec.plan, spec.architecture, spec.data_parallel * spec.plan.context
    ends = min(parameters.common, 2.0 * sizes.vocab * sizes.hidden / plan.tensor)
    used = min(2.0, _number(plan)) if plan.precision is not Precision.FP32 else 4.0
    if plan.adapter is Adapter.FULL:
        stored, kept = used, _Parameters(_number(plan) * parameters.common, _number(plan) * parameters.experts)
        copy = 0.0 if plan.precision in PURE else used * (parameters.all - ends / 2)
    else:
        stored, copy = QUANTIZED_BYTES if plan.adapter in QUANTIZED else used, 0.0
        common = used * ends + stored * (parameters.common - ends) + _number(plan) * trained.all
        kept = _Parameters(common, stored * parameters.experts)
    if plan.sharding is Sharding.NONE or ranks == 1:
        return kept.all + copy
    if plan.sharding is Sharding.ZERO2:  # masters are sharded as the optimizer is, what is multiplied is not
        return _over_ranks(kept, spec) + copy if copy else kept.all
    sharded = parameters.common - ends + (parameters.experts if plan.expert < ranks else 0.0)
    return _over_ranks(kept, spec) + used * ends + GATHERED_LAYERS * stored * sharded * plan.pipeline / sizes.layers


def _layer(spec: RunSpec) -> tuple[float, float]:
    """Bytes of activations for a token in one layer: of all but a feed-forward layer without a gate; of that."""
    plan, sizes = spec.plan, spec.architecture
    queries, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
    numbers = (8.0 if gated(sizes) else 4.0) * sizes.hidden + 2.0 * queries + 2.0 * keys  # RMSNorm, LayerNorm
    width = feed_forward_width(sizes)
    number = _number(plan) if plan.precision in PURE else 2.0 * (AUTOCAST if _autocast(plan) else 1.0)
    fused = any(word in plan.attention for word in FUSED)
    scores = 0.0 if fused else SCORE_BYTES * sizes.heads * spec.sequence
    if gated(sizes):
        return number * (numbers + 4.0 * width) + scores, 0.0
    inputs = 2.0 if plan.adapter is Adapter.FULL else 1.0  # a frozen layer needs no input for its gradient
    return number * numbers + scores, number * inputs * width


def feed_forward_width(sizes: Architecture) -> float:
    """Numbers between the two halves of a feed-forward layer, for a token: over the layers on average."""
    dense = sizes.dense_layers / sizes.layers if sizes.experts else 1.0
    experts = (sizes.experts_per_token + sizes.shared_experts) * sizes.expert_hidden
    return dense * (sizes.dense_hidden or 4 * sizes.hidden) + (1 - dense) * experts


def gated(sizes: Architecture) -> bool:
    """Whether feed-forward layers have a gate: which the count of parameters tells, as nothing else does."""
    return _form(sizes)[0]


def tied(sizes: Architecture) -> bool:
    """Whether the output layer is the embedding."""
    return _form(sizes)[1]


@cache
def _form(sizes: Architecture) -> tuple[bool, bool]:
    """With a gate, and tied: of the four, what comes nearest to the count of parameters."""
    if sizes.experts:
        return True, False
    attention = 2.0 * sizes.hidden * sizes.head_dim * (sizes.heads + sizes.kv_heads)
    matrix = float(sizes.hidden * (sizes.dense_hidden or 4 * sizes.hidden))
    table = float(sizes.vocab * sizes.hidden)

    def off(form: tuple[bool, bool]) -> float:
        counted = (1 if form[1] else 2) * table + sizes.layers * (attention + (3 if form[0] else 2) * matrix)
        return abs(1e9 * sizes.params_b - counted)

    return min(((True, False), (True, True), (False, False), (False, True)), key=off)


def _expert_parameters(sizes: Architecture) -> float:
    """Of all experts that tokens are sent to."""
    return 3.0 * sizes.hidden * sizes.expert_hidden * sizes.experts * (sizes.layers - sizes.dense_layers)
