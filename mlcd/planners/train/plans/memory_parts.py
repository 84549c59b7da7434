"""GPU memory of training a language model by a plan: the tensors on one GPU, by purpose.

Symbols   P    parameters of the fullest pipeline stage   T    trained ones of these     b   bytes of a number
          t    tokens of a micro-batch on a rank          h, f, V   widths: layer, feed-forward, vocabulary
          L    layers of a stage                          m    micro-batches in flight (1F1B: at most pp)

    weights      b P; four bits if quantized; under autocast also a copy in the precision of the arithmetic; sharded
                 over the data-parallel ranks with zero3, except the layers that are gathered at that time
    gradients    b T, sharded by zero2 and zero3. They are freed between steps, so without accumulation they do not
                 exist yet when activations are at their peak
    optimizer    2 b T: the moments of Adam, sharded likewise
    update       b T: temporary copies of an optimizer that processes all tensors at once
    saved        activations stored for the backward pass: m L t (norms + attention + feed-forward) numbers
    stream       with checkpointing, stored instead: m L t h
    logits       12 bytes t V: in 16 bits, in fp32, and the log of their softmax; the gradient takes their place
    layer        the one layer being recomputed or differentiated, and the gradient of the output layer

Tensor parallelism with sequence parallelism divides all of it. Experts under expert parallelism are sharded only over
the ranks that hold the same ones: data-parallel ranks / expert parallelism. Activations are counted as in Korthikanti
et al., 'Reducing Activation Recomputation in Large Transformer Models' (2022); the numbers here are from profiles of
Hugging Face models.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.train.nouns import Adapter, Checkpointing, Precision, Sharding, TrainingPlan
from mlcd.planners.train.plans.run_spec import CPU, RunSpec

PURE = {Precision.PURE_BF16: 2.0, Precision.PURE_FP16: 2.0, Precision.FP32: 4.0}
"""Bytes of a weight if everything is stored in the precision in which it is used."""
QUANTIZED = (Adapter.QLORA, Adapter.GPTQ_LORA)
QUANTIZED_BYTES = 0.5625
"""Bytes of a weight in four bits, with a scale for every 64 weights."""
LOGIT_BYTES = 12.0
KEPT = {Checkpointing.NONE: 1.0, Checkpointing.SELECTIVE: 0.35, Checkpointing.FULL: 0.0}
"""Stored share of a layer's activations; with full checkpointing, only its input is stored."""
AUTOCAST = 1.2
"""Factor on activations under autocast, which keeps both the originals and the cast copies."""
PROCESS_GB = 0.6
"""A CUDA context with its libraries; a Python process with PyTorch takes as much on a CPU."""
CONNECTED_GB = 0.8
"""Communication buffers of NCCL."""
GIB = 1.073741824
"""GB in a GiB, the unit of GPU memory."""
GATHERED_LAYERS = 2
"""Layers that zero3 holds in full: the current one and the next."""
FUSED = ("flash", "sdpa", "xformers", "memory_efficient")
"""Names of attention that never stores a score for each pair of tokens."""
SCORE_BYTES = 5.0
"""Bytes of a stored score: 16 bits before and after the softmax, and a mask."""


@dataclass(frozen=True, slots=True)
class Needed:
    """GB (10^9 bytes) on a GPU of one pipeline stage.

    `plain`: stored activations of feed-forward layers without a gate, in addition to `saved`. `layer`, `layer_plain`,
    `head`: temporary memory of the current layer and of the output layer. `framework`: memory besides tensors.
    `held`: whether gradients exist at the peak of activations.
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
        """Peak of activations in the forward and backward pass."""
        return self.stream + self.saved + self.plain + max(self.logits, self.layer + self.layer_plain + self.head)

    @property
    def allocated(self) -> float:
        """Peak of all tensors, computed from sizes alone."""
        beside = self.gradients if self.held else 0.0
        return self.weights + self.optimizer + max(self.gradients + self.update, beside + self.activations)

    @property
    def total(self) -> float:
        """Peak of tensors plus the memory of the framework."""
        return self.allocated + self.framework

    def __str__(self) -> str:
        state = f"weights {self.weights:.1f}, gradients {self.gradients:.1f}, optimizer {self.optimizer:.1f}"
        return f"{self.total:.1f} GB ({state}, activations {self.activations:.1f})"


def needed_gb(spec: RunSpec) -> Needed:
    """Memory on the fullest GPU of a training run."""
    return max(stages_gb(spec), key=lambda stage: stage.total)


def stages_gb(spec: RunSpec) -> tuple[Needed, ...]:
    """Memory of the first pipeline stage, which holds most micro-batches, and of the last, which has the logits."""
    last = _stage(spec, last=True)
    return (last,) if spec.plan.pipeline == 1 else (_stage(spec, last=False), last)


def room_gb(spec: RunSpec) -> float:
    """Memory of a GPU in 10^9 bytes. A machine without GPUs has 10^9 bytes a GB: its system takes the difference."""
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
    """Bytes of a stored trained weight."""
    return PURE.get(plan.precision, 4.0)


def _stream_bytes(plan: TrainingPlan) -> float:
    """Bytes of a number of the residual stream."""
    return 4.0 if plan.precision is Precision.FP32 or _autocast(plan) else 2.0


def _autocast(plan: TrainingPlan) -> bool:
    """Whether each operation casts its inputs. Sharded training casts whole layers beforehand."""
    return plan.precision not in PURE and plan.sharding is Sharding.NONE


@dataclass(frozen=True, slots=True)
class _Parameters:
    """Parameters of a stage on one GPU before sharding. Only ranks with the same `experts` can shard them."""

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
    """What a rank stores if all ranks with the same parameters store an equal part."""
    ranks = spec.data_parallel * spec.plan.context
    return size.common / ranks + size.experts / max(1.0, ranks / spec.plan.expert)


def _weights(spec: RunSpec, parameters: _Parameters, trained: _Parameters) -> float:
    """Peak bytes of weights on a rank: stored weights, copies for the arithmetic, and gathered layers."""
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
    """Bytes of activations of a token in one layer: without and of a feed-forward layer that has no gate."""
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
    """Inner width of a feed-forward layer for a token, on average over the layers."""
    dense = sizes.dense_layers / sizes.layers if sizes.experts else 1.0
    experts = (sizes.experts_per_token + sizes.shared_experts) * sizes.expert_hidden
    return dense * (sizes.dense_hidden or 4 * sizes.hidden) + (1 - dense) * experts


def gated(sizes: Architecture) -> bool:
    """Whether feed-forward layers have a gate, inferred from the number of parameters."""
    return _form(sizes)[0]


def tied(sizes: Architecture) -> bool:
    """Whether the output layer is the embedding."""
    return _form(sizes)[1]


@cache
def _form(sizes: Architecture) -> tuple[bool, bool]:
    """(gated, tied): the combination whose count is nearest to the model's number of parameters."""
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
    """Parameters of all routed experts."""
    return 3.0 * sizes.hidden * sizes.expert_hidden * sizes.experts * (sizes.layers - sizes.dense_layers)
