"""Environment variables and arguments that pass the training plan to a launch: MLCD's own, and those the job names.

The arguments take the place of $MLCD_ARGUMENTS in the job's `run` command.
"""

from __future__ import annotations

from mlcd.core.configuration import Configuration
from mlcd.core.job import Job
from mlcd.planners.train.nouns import Adapter, accumulation, data_parallel, plan_of, planned_training

OWN = {
    "tensor": "MLCD_TENSOR",
    "pipeline": "MLCD_PIPELINE",
    "micro_batch": "MLCD_MICRO_BATCH",
    "sharding": "MLCD_SHARDING",
    "checkpointing": "MLCD_CHECKPOINTING",
    "adapter": "MLCD_ADAPTER",
    "precision": "MLCD_PRECISION",
    "context": "MLCD_CONTEXT",
    "expert": "MLCD_EXPERT",
}
"""MLCD's own variable for each field of a plan. It is always set."""
ARGUMENTS = "MLCD_ARGUMENTS"


def plan_settings(configuration: Configuration) -> dict[str, str | int]:
    """The fields of the plan by name, for run documents; empty without a plan."""
    plan = plan_of(configuration)
    if plan is None:
        return {}
    values = {field: getattr(plan, field) for field in OWN}
    values = {field: value if isinstance(value, int) else str(value) for field, value in values.items()}
    ranks = data_parallel(plan, configuration.nodes, configuration.offer)
    return {
        **values,
        "data_parallel": ranks,
        "accumulation": accumulation(plan, configuration.nodes, configuration.offer),
    }


def plan_variables(job: Job, configuration: Configuration) -> dict[str, str]:
    """The environment variables of a launch. Data parallelism and accumulation keep the global batch constant."""
    plan, training = plan_of(configuration), planned_training(job)
    if plan is None or training is None:
        return {}
    variables = {name: str(getattr(plan, field)) for field, name in OWN.items()}
    variables |= {
        "MLCD_DATA_PARALLEL": str(data_parallel(plan, configuration.nodes, configuration.offer)),
        "MLCD_ACCUMULATION": str(accumulation(plan, configuration.nodes, configuration.offer)),
        "MLCD_GLOBAL_BATCH": str(training.global_batch),
        "MLCD_SEQUENCE": str(training.sequence),
    }
    if plan.adapter is not Adapter.FULL:
        variables["MLCD_LORA_RANK"] = str(training.lora_rank)
    arguments = []
    for knob in training.knobs:
        word = knob.word(getattr(plan, knob.field))
        if knob.env:
            variables[knob.env] = word
        elif knob.argument:
            arguments.append(f"{knob.argument}{word}" if knob.argument.endswith("=") else f"{knob.argument} {word}")
    return {**variables, ARGUMENTS: " ".join(arguments)}
