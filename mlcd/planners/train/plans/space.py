"""The search space of training plans: instance types x node counts x plans that the job's script accepts.

It leaves out the impossible: tensor parallelism that does not divide the heads, pipelines that do not divide the
layers, a precision that the GPU lacks, tensor parallelism across nodes unless the job allows it, and a global batch
that the ranks cannot share equally. It also leaves out a sharded plan on one rank, if the unsharded one is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.errors import UserError
from mlcd.core.units import counted
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.train.nouns import PlannedTraining, Sharding, TrainingPlan
from mlcd.planners.train.plans.run_spec import gpu_of


def plan_space(space: Space, training: PlannedTraining) -> Space:
    """A cloud's machines with the plans that suit them. Nodes without GPUs are used only if there are no others."""
    offers = [choice for choice in space.choices if choice.offer.accelerators] or space.choices
    plans = possible_plans(training)
    suited: dict[tuple[int, tuple[int, ...]], tuple[tuple[int, ...], tuple[TrainingPlan, ...]]] = {}
    choices = []
    for choice in offers:
        same = choice.offer.workers, choice.nodes
        if same not in suited:  # of an offer, only GPUs a node and node counts matter here; precision is checked below
            suited[same] = _that_suit(choice, plans, training)
        nodes, settings = suited[same]
        gpu = gpu_of(choice.offer)
        settings = tuple(plan for plan in settings if gpu.has(plan.precision.removeprefix("pure-")))
        choices.append(replace(choice, nodes=nodes, settings=settings))
    possible = tuple(choice for choice in choices if choice.nodes and choice.settings)
    if not possible:
        raise UserError(_why_none(offers, plans, training))
    return replace(space, choices=possible)


def possible_plans(training: PlannedTraining) -> tuple[TrainingPlan, ...]:
    """Every combination of the knobs' values that the model allows, on any machines."""
    return tuple(plan for plan in _all_plans(training) if why_not(plan, training) is None)


def _all_plans(training: PlannedTraining) -> Iterator[TrainingPlan]:
    sharding = next((knob.values for knob in training.knobs if knob.field == "sharding"), ())
    for values in product(*(knob.values for knob in training.knobs)):
        fields = (knob.field for knob in training.knobs)
        chosen = training.fixed.having(**dict(zip(fields, values, strict=True)))
        plan = replace(chosen, global_batch=training.global_batch)
        alike = plan.sharding is not Sharding.NONE and Sharding.NONE in sharding
        yield replace(plan, least_ranks=2) if alike else plan


def why_not(plan: TrainingPlan, training: PlannedTraining) -> str | None:
    """Why a plan does not suit the model; None if it does."""
    model, batch = training.architecture, training.global_batch
    by_heads = model.heads % plan.tensor or (model.kv_heads > 1 and model.kv_heads % plan.tensor)
    reasons = {
        f"tensor {plan.tensor} does not divide the {_heads(model)}": by_heads,
        f"pipeline {plan.pipeline} does not divide the {model.layers} layers": model.layers % plan.pipeline,
        f"context {plan.context} does not divide the sequence of {training.sequence}": training.sequence % plan.context,
        f"expert {plan.expert}: the model has no experts; leave it out": plan.expert > 1 and not model.experts,
        f"expert {plan.expert} does not divide the {counted(model.experts, 'expert')}": model.experts % plan.expert,
        f"micro_batch {plan.micro_batch} does not divide the global batch of {batch}": batch % plan.micro_batch,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _heads(model: Architecture) -> str:
    shared = f" and {model.kv_heads} key-value heads" if model.kv_heads != model.heads else ""
    return f"{model.heads} heads{shared}"


def _that_suit(
    choice: Choice, plans: Iterable[TrainingPlan], training: PlannedTraining
) -> tuple[tuple[int, ...], tuple[TrainingPlan, ...]]:
    """The node counts that suit some plan, and the plans that suit some node count."""
    within = [plan for plan in plans if plan.tensor <= choice.offer.workers or training.across_nodes]
    nodes = tuple(n for n in choice.nodes if any(plan.suits(n, choice.offer) for plan in within))
    return nodes, tuple(plan for plan in within if any(plan.suits(n, choice.offer) for n in nodes))


def _why_none(choices: Sequence[Choice], plans: tuple[TrainingPlan, ...], training: PlannedTraining) -> str:
    if not plans:
        return f"plan: {next(why for plan in _all_plans(training) if (why := why_not(plan, training)) is not None)}"
    everywhere, choices = choices, [each for each in choices if any(_has(each.offer, plan) for plan in plans)]
    offers = [choice.offer for choice in choices]
    if not offers:
        ways = f"{_other_precision(choice.offer for choice in everywhere)}name other types: mlcd offers"
        return f"plan: no GPU here has {plans[0].precision}; {ways}"
    least = min(plan.tensor for plan in plans)
    if all(offer.workers < least for offer in offers) and not training.across_nodes:
        most = max(offer.workers for offer in offers)
        return f"plan: tensor {least}: no node here has more than {counted(most, 'GPU')}; or say `across_nodes: true`"
    counts = sorted({n * choice.offer.workers for choice in choices for n in choice.nodes})
    groups = sorted({plan.tensor * plan.pipeline * plan.context for plan in plans})
    if not any(count % group == 0 for count in counts for group in groups):
        least_of = f"tensor x pipeline x context is at least {groups[0]}"
        no_multiple = f"none of {_ends(counts)} is a" if len(counts) > 1 else f"{_ends(counts)} are no"
        return f"plan: {least_of}, and {no_multiple} multiple; name more nodes"
    shared = f"a global batch of {training.global_batch} in micro-batches of {min(plan.micro_batch for plan in plans)}"
    by = "by any of" if len(counts) > 1 else "by"
    return f"plan: {shared} cannot be shared equally {by} {_ends(counts)}; change global_batch"


def _ends(counts: list[int]) -> str:
    return f"{counts[0]} to {counts[-1]} GPUs" if len(counts) > 1 else counted(counts[0], "GPU")


def _other_precision(offers: Iterable[Offer]) -> str:
    """Advice to use a precision that some GPU has."""
    gpus = [gpu_of(offer) for offer in offers]
    other = next((each for each in ("bf16", "fp16") if any(gpu.has(each) for gpu in gpus)), None)
    return f"say `precision: {other}` if the script accepts it, or " if other else ""


def _has(offer: Offer, plan: TrainingPlan) -> bool:
    return gpu_of(offer).has(plan.precision.removeprefix("pure-"))
