"""The report of a decided training plan: how a step is split, its speed, and the variables passed to the script."""

from __future__ import annotations

from mlcd.core.additions import Additions, Cell, Column, Fact, Table
from mlcd.core.configuration import Configuration
from mlcd.core.ledger import Account
from mlcd.core.units import counted, format_count
from mlcd.planners.train.nouns import PlannedTraining, TrainingPlan, plan_of, planned_training
from mlcd.planners.train.plans.plan_variables import ARGUMENTS, OWN, plan_settings, plan_variables
from mlcd.planners.train.plans.run_spec import flops_of_sequence, gpu_of

DERIVED = {
    "MLCD_DATA_PARALLEL": "data-parallel ranks",
    "MLCD_ACCUMULATION": "micro-batches of a rank in each step",
    "MLCD_GLOBAL_BATCH": "sequences of a step",
    "MLCD_SEQUENCE": "tokens of a sequence",
    "MLCD_LORA_RANK": "rank of the adapter",
}
"""Variables that follow from the machines and the job, and what they mean."""


def plan_report(account: Account, beside: Additions | None = None) -> Additions | None:
    """The plan of the decided configuration, before `beside`; only `beside` if no plan was decided."""
    training, decision = planned_training(account.job), account.decision
    if training is None or decision is None or decision.configuration is None:
        return beside
    configuration = account.final_runs[-1].configuration if account.final_runs else decision.configuration
    plan, more = plan_of(configuration), beside or Additions()
    if plan is None:
        return beside
    facts = [_step(configuration), *_speed(account, configuration, training, plan), *more.facts]
    table = _variables(account, configuration, training)
    return Additions(facts=facts, tables=[table, *more.tables], figures=more.figures)


def _step(configuration: Configuration) -> Fact:
    """How the sequences of a step are split."""
    settings = plan_settings(configuration)
    ranks, micro_batch, times = (int(settings[name]) for name in ("data_parallel", "micro_batch", "accumulation"))
    shared = f"{counted(ranks, 'data-parallel rank')} x micro-batch {micro_batch} x {times} accumulated"
    return Fact(label="A step", value=counted(ranks * micro_batch * times, "sequence"), hint=shared)


def _speed(account: Account, where: Configuration, training: PlannedTraining, plan: TrainingPlan) -> list[Fact]:
    """Tokens a second, and model FLOPs utilization: without recomputation, as a share of the GPUs' bf16 peak."""
    measured = [m for m in (*account.history.good, *account.history.runs) if m.ok and m.configuration == where]
    if not measured:
        return []
    rate, gpus, unit = measured[-1].rate, where.workers, "tokens" if training.architecture.vocab else "samples"
    each = rate * (training.sequence if training.architecture.vocab else 1)
    words = [f"{format_count(each / gpus)} a GPU"] if gpus > 1 else []
    if where.offer.accelerators and (most := gpu_of(where.offer).tflops_bf16 * 1e12 * gpus):
        share = rate * flops_of_sequence(training.architecture, training.sequence, plan.adapter) / most
        words.append(f"{share:.0%} of what the GPU can do in bf16".replace("%", " %"))
    return [Fact(label="Speed", value=f"{format_count(each)} {unit}/s", hint=", ".join(words))]


def _variables(account: Account, configuration: Configuration, training: PlannedTraining) -> Table:
    """The variables and arguments that the job names, and those that follow from the machines."""
    variables, settings = plan_variables(account.job, configuration), plan_settings(configuration)
    rows: list[list[Cell]] = []
    for knob in training.knobs:
        by = knob.env or knob.argument or OWN[knob.field]
        value, word = settings[knob.field], knob.word(settings[knob.field])
        also = f": {value}" if word != str(value) else ""
        rows.append([by, word, knob.field.replace("_", "-") + also])
    rows += [[name, variables[name], words] for name, words in DERIVED.items() if name in variables]
    if variables.get(ARGUMENTS):
        rows.append([ARGUMENTS, variables[ARGUMENTS], "all arguments above"])
    columns = [Column(label="By"), Column(label="Value"), Column(label="What it is")]
    return Table(title="Plan variables of the script", columns=columns, rows=rows)
