"""What a job file says of a model, of how its work is counted, and of the plans that its script accepts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.errors import JobFileError, UserError
from mlcd.core.job import Job
from mlcd.core.planner import planner_named, planner_of
from mlcd.planners.form.jobs import job_from_text
from mlcd.planners.jobfile.read import load_job, parse_job
from mlcd.planners.jobfile.schema import job_schema
from mlcd.planners.modeling.architecture import architecture_of
from mlcd.planners.train.inlined_config import with_inlined_config
from mlcd.planners.train.nouns import Adapter, PlannedTraining, Precision, Sharding, planned_training
from mlcd.planners.train.plans.plan_variables import OWN

PATH = Path("/jobs/job.yaml")
SIZES = "{layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 128256}"
CONFIG = {
    "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False,
}  # fmt: skip
USUAL = f"model: {SIZES}|work: {{tokens: 300M}}|global_batch: 256|sequence: 4096|plan: {{micro_batch: 4}}"


def read(keys: str = USUAL, task: str = "run: python train.py") -> Job:
    """The job of these keys of the `mlcd:` block, with '|' between them."""
    block = "\n".join(f"  {key}" for key in keys.split("|"))
    return parse_job(f"{task}\nmlcd:\n{block}\n", PATH)


def asked(job: Job) -> PlannedTraining:
    found = planned_training(job)
    assert found is not None
    return found


def with_plan(plan: str, task: str = "run: python train.py") -> Job:
    return read(USUAL.replace("{micro_batch: 4}", plan), task)


def test_tokens_are_rounded_up_to_whole_sequences():
    assert read().work_samples == 73_243  # 300M / 4096 = 73242.2
    assert read("work: {tokens: 8192}|sequence: 4096").work_samples == 2


def test_sizes_and_a_config_give_the_same_architecture(tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    text = "mlcd:\n  " + USUAL.replace(SIZES, "{config: config.json}").replace("|", "\n  ")
    (tmp_path / "job.yaml").write_text(text)
    by_file = asked(load_job(tmp_path / "job.yaml")).architecture
    assert by_file.params_b == pytest.approx(8.03, rel=0.01)
    assert asked(read()).architecture == by_file
    assert asked(read(USUAL.replace(SIZES, f"{{config: {json.dumps(CONFIG)}}}"))).architecture == by_file


def test_stated_parameters_replace_the_counted_ones():
    model = asked(read(USUAL.replace("{layers", "{params: 8B, layers"))).architecture
    assert (model.params_b, model.active_b) == pytest.approx((8.0, 8.0))


def test_an_encoder_needs_no_vocabulary_and_a_config_of_one_is_read():
    huge = "layers: 32, hidden: 1280, heads: 16"
    keys = f"model: {{{huge}, encoder: true}}|work: {{samples: 1M}}|sequence: 257|global_batch: 256"
    assert read(keys).hints.parameters == pytest.approx(632e6, rel=0.01)  # ViT-H/14, as published
    vit = '{"model_type": "vit", "hidden_size": 1280, "num_hidden_layers": 32, "num_attention_heads": 16'
    config = f'model: {{config: {vit}, "intermediate_size": 5120, "image_size": 224, "patch_size": 14}}}}'
    assert read(f"{config}|work: {{samples: 1M}}|sequence: 257").hints.parameters == pytest.approx(632e6, rel=0.01)


def test_missing_hints_are_computed_from_the_model():
    hints = read().hints
    assert hints.parameters == pytest.approx(8.03e9, rel=0.01)
    assert hints.flops_per_sample == pytest.approx(6 * 8.03e9 * 4096, rel=0.1)  # and attention
    assert hints.global_batch == 256
    said = read(f"{USUAL}|parameters: 42M|flops_per_sample: 1P").hints
    assert (said.parameters, said.flops_per_sample, said.global_batch) == (42e6, 1e15, 256)
    lora = with_plan("{micro_batch: 4, adapter: lora}").hints
    assert lora.flops_per_sample == pytest.approx((hints.flops_per_sample or 0) * 2 / 3)


def test_without_a_plan_the_model_gives_hints_and_only_machines_are_searched():
    job = read(USUAL.rpartition("|")[0])
    assert (job.ask, job.blocks) == (None, {})
    assert job.hints.parameters == pytest.approx(8.03e9, rel=0.01)
    assert read("work: 90M|global_batch: 64").hints.global_batch == 64


def test_what_varies_has_a_knob_and_what_does_not_is_fixed():
    job = with_plan(
        "{tensor: {env: TP, values: 1..8}, micro_batch: {argument: --micro-batch, values: [1, 2, 4]}, precision: fp16,"
        " sharding: {env: ZERO, values: {none: 0, zero3: 3}}, adapter: {env: ADAPTER, values: [lora], rank: 32}}"
    )
    task = asked(job)
    assert {knob.field: knob.values for knob in task.knobs} == {
        "tensor": (1, 2, 4, 8), "micro_batch": (1, 2, 4), "sharding": ("none", "zero3"), "adapter": ("lora",),
    }  # fmt: skip
    assert {knob.field: knob.env or knob.argument for knob in task.knobs} == {
        "tensor": "TP", "micro_batch": "--micro-batch", "sharding": "ZERO", "adapter": "ADAPTER",
    }  # fmt: skip
    sharding = next(knob for knob in task.knobs if knob.field == "sharding")
    assert (sharding.word(Sharding.NONE), sharding.word(Sharding.ZERO3)) == ("0", "3")
    assert (task.fixed.precision, task.fixed.adapter, task.lora_rank) == (Precision.FP16, Adapter.LORA, 32)


def test_the_command_has_a_place_for_arguments():
    plan = "{micro_batch: {argument: --mb, values: [1, 2]}}"
    assert with_plan(plan).task["run"] == "python train.py $MLCD_ARGUMENTS\n"
    assert with_plan(plan, "run: python train.py $MLCD_ARGUMENTS | tee log").task["run"].count("$MLCD_ARGUMENTS") == 1
    two_lines = "run: |\n  torchrun \\\n    train.py --lr 1\n"
    assert with_plan(plan, two_lines).task["run"].endswith("--lr 1 $MLCD_ARGUMENTS\n")
    assert with_plan("{micro_batch: 2}").task["run"] == "python train.py"


def test_train_and_scale_each_read_the_plan():
    job = read(f"{USUAL}|checkpoints: true")
    assert planner_of(job).name == "train"
    assert planned_training(planner_named("train").with_options(job, {})) is not None
    assert (
        planned_training(planner_named("train").with_options(planner_named("train").with_options(job, {}), {}))
        is not None
    )
    scaled = planner_named("scale").with_options(job, {})
    assert planner_of(scaled).name == "scale"
    assert planned_training(scaled) == planned_training(job)
    assert planner_named("scale").with_options(scaled, {}) == scaled
    both = read(f"{USUAL}|checkpoints: true|scale: {{workers: 1..4}}")
    assert planned_training(planner_named("train").with_options(both, {})) is not None
    assert planner_of(planner_named("scale").with_options(both, {})).name == "scale"


def test_a_service_reads_no_other_file_for_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.chdir(tmp_path)
    text = "mlcd:\n  " + USUAL.replace("|", "\n  ")
    assert planned_training(job_from_text("train", text, {})) is not None
    with pytest.raises(UserError, match=r"'config\.json': a service reads no file of yours; write the sizes"):
        job_from_text("train", text.replace(SIZES, "{config: config.json}"), {})


@pytest.mark.parametrize(
    "written", ["{config: config.json}", "{config: 'config.json' }", "\n    config: config.json # of ours"]
)
def test_a_config_beside_the_job_file_is_inlined_for_a_service(tmp_path: Path, written: str):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    text = "mlcd:\n  " + USUAL.replace("|", "\n  ").replace(SIZES, written)
    sent = with_inlined_config(text, tmp_path)
    assert sent.count("\n") == text.count("\n")
    asked = planned_training(job_from_text("train", sent, {}))
    assert asked is not None
    assert asked.architecture == architecture_of(CONFIG)
    assert with_inlined_config("mlcd: {work: 1}", tmp_path) == "mlcd: {work: 1}"


def test_every_knob_and_key_is_in_the_schema_for_editors():
    known = job_schema()["$defs"]
    block = known["Block"]["properties"]
    assert {"model", "sequence", "global_batch", "plan"} <= set(block)
    assert set(known["PlanKeys"]["properties"]) == set(OWN)
    assert "across_nodes" in known["TensorKnob"]["anyOf"][1]["properties"]
    assert "tokens" in json.dumps(known["Work"])


PLAN = "plan: {micro_batch: 4}"
MODEL = f"model: {SIZES}"


@pytest.mark.parametrize(
    "old, new, message",
    [
        (PLAN, "plan: {micro_batch: 4, tensr: 2}", "7:26: unknown key 'tensr': did you mean 'tensor'?"),
        (PLAN, "plan: {micro_batch: {envs: MB, values: 2}}", "7:24: unknown key 'envs': did you mean 'env'?"),
        (PLAN, "plan: {micro_batch: {env: MB}}", "7:10: `values` is missing from the `micro_batch:` block"),
        (PLAN, "plan: {tensor: 2}", "7:3: `micro_batch` is missing from the `plan:` block"),
        (PLAN, "plan: 7", "7:3: plan '7': expected keys below it"),
        (PLAN, "plan: {micro_batch: [1, 2]}", "7:10: micro_batch: how does the script learn which value "
         "to use? Say, for example, `micro_batch: {env: MLCD_MICRO_BATCH, values: [1, 2]}`"),
        (PLAN, "plan: {micro_batch: lots}", "7:10: micro_batch 'lots': expected a batch, a range such as 64..1024, "
         "or a list such as 96,192"),
        (PLAN, "plan: {micro_batch: 4, sharding: zro2}", "7:26: sharding 'zro2': did you mean 'zero2'?"),
        (PLAN, "plan: {micro_batch: 4, tensor: 3}", "7:26: tensor 3 does not divide the 32 heads and 8 key-value heads"
         "; one that does: 2"),
        (PLAN, "plan: {micro_batch: 4, pipeline: 5}", "7:26: pipeline 5 does not divide the 32 layers; "
         "one that does: 4"),
        (PLAN, "plan: {micro_batch: 4, expert: 2}", "7:26: expert 2: the model has no experts; leave it out"),
        (PLAN, "plan: {micro_batch: 4, sharding: {env: Z, values: [no, zero3]}}", "7:45: YAML reads no, off and false "
         "as a boolean, not a word; say one of none, zero2, zero3"),
        (MODEL, f"model: {SIZES.replace('kv_heads: 8', 'kv_heads: 7')}", "4:3: model: kv_heads 7 does not "
         "divide heads 32; correct one"),
        (PLAN, "plan: {micro_batch: 3}", "7:10: micro_batch 3 does not divide the global batch of 256; "
         "one that does: 2"),
        (PLAN, "plan: {micro_batch: 4, adapter: [full, lora]}", "7:26: values: all weights (full) and an adapter "
         "train different models; name one of them"),
        (PLAN, "plan: {micro_batch: 4, adapter: {values: full, rank: 8}}", "7:26: rank: full trains all weights and "
         "has no adapter; leave it out, or name lora"),
        (PLAN, "plan: {micro_batch: {env: MB, argument: --mb, values: 2}}", "7:10: pass it to the script by a variable "
         "(`env`) or by an argument (`argument`), not by both"),
        (PLAN, "plan: {micro_batch: {env: A-B, values: 2}}", "7:24: env 'A-B': expected the name of a variable, "
         "such as TP"),
        (PLAN, "plan: {micro_batch: {argument: 'rm -rf', values: 2}}", "7:24: argument 'rm -rf': expected an argument,"
         " such as --micro-batch or train.micro_batch="),
        (PLAN, "plan: {micro_batch: 4, sharding: {env: Z, values: {none: 0, zero3: '3; ls'}}}", "7:26: sharding "
         "'3; ls': expected one word for the script, without blanks or quotes"),
        (PLAN, "plan: {micro_batch: {env: A, values: 2}, tensor: {env: A, values: 2}}", "7:24: micro_batch: 'A' "
         "already passes tensor; name another"),
        (PLAN, "plan: {micro_batch: {env: LR, values: 2}}", "7:24: micro_batch: LR is set in `envs:`, too; "
         "remove it there"),
        (PLAN, "plan: {micro_batch: {env: MLCD_RANK, values: 2}}", "7:24: micro_batch: MLCD passes this by "
         "MLCD_MICRO_BATCH; name that, or a variable of your own"),
        (f"|{MODEL}", "", "6:3: plan: `model` is missing beside it; say `model: {config: config.json}`"),
        ("|global_batch: 256", "", "6:3: plan: `global_batch` is missing beside it; say `global_batch: 256`"),
        (f"|sequence: 4096|{PLAN}", "", "3:10: work: how many tokens has a sample? Add `sequence: 4096`"),
        ("{tokens: 300M}", "300M", "3:3: work '300M': tokens or sequences? Say `work: {tokens: 300M}`, or "
         "`{samples: 300M}` if sequences are meant"),
        ("{tokens: 300M}", "{tokens: 1k, samples: 5}", "3:3: work: say either `samples: 90M`, or `dataset: 1.28M` and "
         "`epochs: 70`, or `tokens: 300M` with `sequence: 4096`"),
        ("global_batch: 256", "global_batch: 0", "5:3: global_batch '0': must be more than zero, such as 256"),
        ("global_batch: 256", "global_batch: 256|batch: 64", "5:3: batch 64 and global_batch 256 are the same thing: "
         "leave one out"),
        (SIZES, "config.json", "4:3: model 'config.json': expected keys below it, such as "
         "`model: {config: config.json}`"),
        (SIZES, "{config: nowhere.json}", "4:11: /jobs/nowhere.json: no such file; a language model's folder "
         "has a config.json"),
        (SIZES, "{layers: 32, hidden: 4096, heads: 32}", "4:3: model: `vocab` is missing; say `config: config.json`, "
         "or `layers`, `hidden`, `heads` and `vocab`"),
        (SIZES, "{params: 70B, layers: 32, hidden: 4096, heads: 32, vocab: 128k}", "4:3: model: params 70B, but its "
         "sizes make 9.64B; correct them, or leave `params` out"),
        (SIZES, "{layers: 32, hidden: 4096, heads: 30, vocab: 128k}", "4:3: model: heads 30 does not divide hidden "
         "4096; correct one"),
        (SIZES, f"{{config: {json.dumps(CONFIG)}, layers: 3}}", "4:3: model: `config` has all sizes; leave out "
         "`layers`"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_that_says_where_and_what_to_do(old: str, new: str, message: str):
    usual = f"work: {{tokens: 300M}}|{MODEL}|global_batch: 256|sequence: 4096|{PLAN}"
    assert old in usual
    with pytest.raises(JobFileError) as caught:
        read(usual.replace(old, new), "envs: {LR: 1}")
    assert str(caught.value) == f"/jobs/job.yaml:{message}"


def test_a_script_of_several_commands_must_mark_where_arguments_go():
    plan = "{micro_batch: {argument: --mb, values: [1, 2]}}"
    for run in ("run: a | b", 'run: "a\\nb"', "run: ''", "setup: a"):
        with pytest.raises(JobFileError, match=r"write \$MLCD_ARGUMENTS where the arguments belong"):
            with_plan(plan, run)


WORDS = st.sampled_from(["", "1..8", "lora", "zero3", "\0"])
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 10**30) | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["values", "env", "told", "argument", "none", "lora", "config", "layers", "hidden", "heads", "vocab", "rank",
         "num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size", "layer_types", "mlp_only_layers",
         "tensor", "micro_batch", "sharding", "adapter", "across_nodes"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["model", "plan", "global_batch", "sequence", "work"]), ODD))
def test_any_input_gives_a_job_or_an_error_of_one_line(odd: dict[str, object]):
    usual = yaml.safe_load("{" + USUAL.replace("|", ", ") + "}")
    text = yaml.safe_dump({"run": "python train.py", "mlcd": {**usual, **odd}})
    try:
        parse_job(text, PATH)
    except JobFileError as mistake:
        told = str(mistake)
    else:
        return
    assert re.fullmatch(r"/jobs/job\.yaml:\d+:\d+: .*", told)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("{micro_batch: {env: A, values: [1, 2], told: [x]}}", "told: 1 words for 2 values; name one for each"),
        ("{micro_batch: {env: A, values: 1..999999999}, tensor: {env: B, values: 1..999999999}, "
         "pipeline: {env: C, values: 1..999999999}}", "plan: 29,791 combinations of values; name fewer"),
        ("{micro_batch: 999999999}", "does not divide the global batch of 256; one that does: 256"),
    ],
)  # fmt: skip
def test_counts_out_of_range_are_refused_at_once(plan: str, message: str):
    with pytest.raises(JobFileError, match=re.escape(message)):
        with_plan(plan)


@pytest.mark.parametrize(
    "odd", ["num_hidden_layers: 1.0e+12", "num_attention_heads: 0", "mlp_only_layers: 5, num_experts: 2"]
)
def test_an_impossible_config_gives_an_error_of_one_line(odd: str):
    sizes = {key: value for key, value in CONFIG.items() if key not in odd}
    with pytest.raises(JobFileError, match=r"^/jobs/job.yaml:3:1\d: config"):
        read(USUAL.replace(SIZES, f"{{config: {{{odd}, {json.dumps(sizes)[1:-1]}}}}}"))
