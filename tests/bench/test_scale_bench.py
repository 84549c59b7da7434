"""`mlcd bench scale`: on made runs whose closed form is known, and on the real ones where they are at hand."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlcd.core.job import Objective
from mlcd.planners.modeling.performance import Direction
from mlcd_bench.scale import SEARCHES, Folder, Problem, problem, read_folder
from mlcd_bench.scale.evidence import early_samples, reference_run, short_start, statistical_efficiency
from mlcd_bench.scale.folder import Run
from mlcd_bench.scale.forecast import Forecast
from mlcd_bench.scale.target import Target, best_so_far, common_target

Mlcd = Callable[..., Any]
SHARED = Path(__file__).parents[3] / "shared" / "data" / "elastic" / "pollux"
NODES, DEVICES, LOCAL = (1, 2, 3, 4, 8), 2, (8, 16, 32, 64, 128)
BATCHES, LOOKS, LEAST_STEPS = (32, 64, 128, 256, 512), 40, 1000
COLUMNS = ("iterations", "metric", "grad_sqr", "grad_var")
NOISE_SCALES = {"net": 200.0, "sibling": 400.0}
"""Made up: two models that follow the critical-batch law exactly."""


def step_s(nodes: float, local: float) -> float:
    """Made up: computing and communicating side by side; a jump from one node to two."""
    return float(((0.02 + 0.002 * local) ** 3 + (0.01 if nodes == 1 else 0.1 + 0.004 * nodes) ** 3) ** (1 / 3))


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def step_rows() -> list[dict[str, Any]]:
    rows = []
    for model in NOISE_SCALES:
        for nodes in NODES:
            for local in LOCAL:
                row = {"model": model, "cluster": "lab", "num_nodes": nodes, "num_gpus": nodes * DEVICES}
                rows.append({**row, "local_batch": local, "step_time_s": step_s(nodes, local)})
        half = {"model": model, "cluster": "lab", "num_nodes": 5, "num_gpus": 5, "local_batch": 32, "step_time_s": 9.0}
        rows.append(half)
    return rows


def run_rows() -> list[dict[str, Any]]:
    rows = []
    for model, scale in NOISE_SCALES.items():
        for batch in BATCHES:
            steps = LEAST_STEPS * (1 + scale / batch)
            for look in range(1, LOOKS + 1):
                row = {"model": model, "global_batch": batch, "epoch": look, "iteration": steps * look / LOOKS}
                metric = 1 - 0.9 ** (look / 2)
                rows.append({**row, "metric": metric, "grad_sqr": 2.0, "grad_var": 2 * scale / BATCHES[0]})
    return rows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "throughput.csv", step_rows())
    write(tmp_path / "validation.csv", run_rows())
    return tmp_path


@pytest.fixture
def net(folder: Path) -> Problem:
    found = problem(read_folder(folder), "net", "lab")
    assert found is not None
    return found


def the_other(folder: Path) -> list[Problem]:
    found = problem(read_folder(folder), "sibling", "lab")
    assert found is not None
    return [found]


def run(metric: list[float], batch: float = 32) -> Run:
    looks = np.arange(1, len(metric) + 1, dtype=float)
    return Run(batch, looks, np.array(metric), np.ones(len(metric)), np.ones(len(metric)))


def test_the_target_is_one_percent_worse_than_the_worst_final_metric():
    up, down = [run([0.0, 0.5, final]) for final in (0.8, 0.9)], [run([9.0, 6.0, final]) for final in (5.0, 4.0)]
    # the rolling median of three looks is the middle one
    assert common_target(up) == Target(pytest.approx(0.5 * 0.99), 1)
    assert common_target(down) == Target(pytest.approx(6.0 * 1.01), -1)
    below_zero = common_target([run([-9.0, -4.0]), run([-9.0, -3.0])])
    assert below_zero.level < -6.5  # worse than the worst, where 99 % of it would be better


def test_a_target_is_reached_by_the_rolling_median_and_not_by_one_outlier():
    lucky = run([0.1, 0.1, 0.9, 0.1, 0.1, 0.6, 0.6, 0.6, 0.6])
    found = Target(0.5, 1).reached(lucky)
    assert found is not None
    assert found.evaluation == 6  # of 0.9, 0.1, 0.1, 0.6, 0.6 the median is 0.6
    assert Target(2.0, 1).reached(lucky) is None


def test_what_a_configuration_really_takes_is_iterations_x_step_time(net: Problem):
    look = common_target(read_runs(net)).reached(net.runs[0].run)
    assert look is not None
    for i in range(len(net.nodes)):
        nodes, batch = net.nodes[i], net.global_batch[i]
        iterations = LEAST_STEPS * (1 + NOISE_SCALES["net"] / batch) * (look.evaluation + 1) / LOOKS
        if not net.interpolated[i]:
            assert net.seconds[i] == pytest.approx(iterations * step_s(nodes, batch / nodes / DEVICES))
        assert net.usd[i] == pytest.approx(net.seconds[i] / 3600 * nodes)  # no price is known of this cluster: $1


def read_runs(one: Problem) -> list[Run]:
    return [reached.run for reached in one.runs]


def test_only_full_nodes_and_batches_that_were_timed_are_configurations(net: Problem):
    places = set(zip(net.nodes.tolist(), net.global_batch.tolist(), strict=True))
    assert net.devices_per_node == DEVICES
    assert 5.0 not in net.nodes  # five nodes were timed with one device each
    assert (1.0, 512.0) not in places  # 256 on each device was never timed
    assert (8.0, 64.0) not in places  # nor were 4
    assert (1.0, 256.0) in places


def test_between_two_timed_batches_the_step_time_lies_on_the_line_in_the_log(net: Problem):
    i = int(np.flatnonzero((net.nodes == 3) & (net.global_batch == 128))[0])
    share = (np.log(22) - np.log(16)) / (np.log(32) - np.log(16))  # ceil(128 / 6) = 22
    assert net.step_s[i] == pytest.approx(step_s(3, 16) ** (1 - share) * step_s(3, 32) ** share)
    assert net.interpolated[i] == 1


def within_intervals(forecast: Forecast, problem: Problem) -> bool:
    low, high = forecast.seconds / forecast.factor, forecast.seconds * forecast.factor
    return bool(((low <= problem.seconds) & (problem.seconds <= high)).all())


@pytest.mark.parametrize("reference", ["smallest", "middle", "largest"])
def test_a_full_search_predicts_runs_that_follow_the_law(net: Problem, folder: Path, reference: str):
    found = SEARCHES["full"](net, reference, Objective.FASTEST, the_other(folder))
    assert found.forecast.seconds == pytest.approx(net.seconds, rel=0.04)
    assert within_intervals(found.forecast, net)


@pytest.mark.parametrize("objective", list(Objective))
def test_a_partial_search_makes_six_probes_at_most_and_measured_what_it_chose(
    net: Problem, folder: Path, objective: Objective
):
    found = SEARCHES["partial"](net, "middle", objective, the_other(folder))
    assert len(found.probes) <= 6
    assert found.chosen in found.probes
    assert np.median(np.abs(found.forecast.seconds / net.seconds - 1)) < 0.1


@pytest.mark.parametrize("search", list(SEARCHES))
def test_no_search_uses_the_time_of_another_run(net: Problem, folder: Path, search: str):
    def slower(reached: Any) -> Any:
        """The same run, ten times slower after a short start."""
        at = reached.run.iterations.copy()
        start = short_start(reached)
        at[start:] = at[start - 1] + 10 * (at[start:] - at[start - 1])
        return replace(reached, run=replace(reached.run, iterations=at))

    earlier = reference_run(net.runs, "middle")
    other = replace(net, runs=tuple(one if one is earlier else slower(one) for one in net.runs))
    first, second = (
        SEARCHES[search](one, "middle", Objective.KNEE, the_other(folder)).forecast.seconds for one in (net, other)
    )
    assert first.tolist() == second.tolist()


def test_falling_epochs_are_recognised_from_two_short_starts(net: Problem):
    def at_fixed_rate(reached: Any) -> Any:
        """Samples to a target as e* + theta / sqrt(B)."""
        batch = reached.run.global_batch
        steps = 1e5 * (1 + 20 / np.sqrt(batch)) / batch * np.arange(1, LOOKS + 1) / LOOKS
        return replace(reached, run=replace(reached.run, iterations=steps))

    falling = replace(net, runs=tuple(at_fixed_rate(one) for one in net.runs))
    model = statistical_efficiency(falling, reference_run(falling.runs, "middle"))
    assert model.direction is Direction.FALLING
    truth = [one.samples for one in falling.runs]
    assert model.predict(np.array(BATCHES, float))[0] == pytest.approx(truth, rel=0.02)


def looked_at(net: Problem, times: int, later: dict[float, int]) -> Problem:
    """The same runs, evaluated less often; at some batches the target is reached so many evaluations later."""
    runs = []
    for one in net.runs:
        kept = slice(LOOKS // times - 1, None, LOOKS // times)
        coarse = replace(one.run, **{name: getattr(one.run, name)[kept] for name in COLUMNS})
        runs.append(replace(one, run=coarse, evaluation=times // 2 - 1 + later.get(one.run.global_batch, 0)))
    iterations = {one.run.global_batch: one.iterations for one in runs}
    seconds = np.array([iterations[batch] for batch in net.global_batch]) * net.step_s
    return replace(
        net, runs=tuple(runs), seconds=seconds, target=Target(float(runs[2].run.metric[runs[2].evaluation]), 1)
    )


@pytest.mark.parametrize("search", ["full", "partial"])
@pytest.mark.parametrize("later", [{64.0: 1, 512.0: 1}, {64.0: -1, 256.0: -1}])
def test_one_evaluation_more_or_less_of_five_is_within_the_intervals(
    net: Problem, search: str, later: dict[float, int]
):
    coarse = looked_at(net, 10, later)
    assert within_intervals(SEARCHES[search](coarse, "middle", Objective.KNEE, []).forecast, coarse)


def test_noise_contradicted_by_two_starts_is_corrected_a_little_and_has_a_larger_error(net: Problem):
    earlier = reference_run(net.runs, "middle")
    half = replace(earlier, run=replace(earlier.run, grad_var=earlier.run.grad_var / 2))
    contradicted = replace(net, runs=tuple(half if one is earlier else one for one in net.runs))
    right, wrong = (statistical_efficiency(one, reference_run(one.runs, "middle")) for one in (net, contradicted))
    assert right.noise_scale == pytest.approx(NOISE_SCALES["net"], rel=0.05)
    assert 1.05 * NOISE_SCALES["net"] / 2 < wrong.noise_scale < NOISE_SCALES["net"]
    assert wrong.shape_error > right.shape_error


def test_noise_from_one_gradient_at_a_time_has_a_larger_error(net: Problem):
    """Variances are of the smallest batch: a run at it has one such gradient in a step, at the largest sixteen."""
    few, many = (statistical_efficiency(net, one).shape_error for one in (net.runs[0], net.runs[-1]))
    assert few > 1.2 * many


def test_two_looks_at_a_start_do_not_make_epochs_fall(net: Problem):
    """At the smallest batch the early level is reached at the second evaluation, just missed at the first."""
    coarse = looked_at(net, 10, {})
    first = coarse.runs[0].run
    smallest = replace(coarse.runs[0], run=replace(first, metric=np.append([0.0, 0.7], first.metric[2:])))
    largest = replace(coarse.runs[-1], run=replace(first, global_batch=512.0, metric=np.append(0.6, first.metric[1:])))
    found = replace(coarse, runs=(smallest, *coarse.runs[1:-1], replace(largest, run=_fewer_steps(largest.run))))
    small, large = early_samples(found)
    assert small > 1.1 * large
    assert statistical_efficiency(found, found.runs[2]).direction is Direction.RISING


def _fewer_steps(one: Run) -> Run:
    return replace(one, iterations=one.iterations * 32 / one.global_batch)


def test_a_target_on_a_flat_part_of_the_reference_has_a_larger_error(net: Problem):
    earlier = reference_run(net.runs, "middle")
    curve = earlier.run.metric
    flat = np.where(curve < 0.5, curve, curve[curve < 0.5][-1] + 1e-3 * np.arange(len(curve)))
    errors = []
    for metric in (curve, flat):
        known = replace(earlier, run=replace(earlier.run, metric=metric))
        level = Target(float(best_so_far(known.run, 1)[earlier.evaluation]), 1)
        found = replace(net, target=level)
        errors.append(statistical_efficiency(found, known).run_error)
    assert errors[1] > 1.5 * errors[0]


def test_the_table_has_every_search_and_what_only_ranks_claims_no_time(mlcd: Mlcd, folder: Path):
    document = mlcd("bench", "scale", folder, "--model", "net", "--cluster", "lab", "-o", "json").document
    rows, choices = document["configurations"], document["choices"]
    assert {row["search"] for row in rows} == {choice["search"] for choice in choices} == set(SEARCHES)
    for row in rows:
        claims = row["search"] != "none"
        assert (row["predicted_hours"] is not None) == (row["error"] is not None) == claims
        if claims:
            assert row["error"] == pytest.approx(row["predicted_hours"] / row["actual_hours"] - 1)
        assert (row["interval"] is not None) == (row["search"] in ("full", "partial"))
    assert {choice["objective"] for choice in choices} == {"fastest", "cheapest", "knee"}
    real = {(row["nodes"], row["global_batch"]): row for row in rows if row["search"] == "full"}
    for choice in choices:
        mine = real[choice["nodes"], choice["global_batch"]]
        if choice["objective"] == "fastest":
            assert choice["ratio"] == pytest.approx(
                mine["actual_hours"] / min(row["actual_hours"] for row in real.values())
            )
        if choice["objective"] == "cheapest":
            assert choice["ratio"] == pytest.approx(
                mine["actual_usd"] / min(row["actual_usd"] for row in real.values())
            )
        if choice["objective"] == "knee":
            assert choice["ratio"] ** 2 == pytest.approx(choice["time_ratio"] * choice["usd_ratio"])
    assert [line["search"] for line in document["pooled"]] == list(SEARCHES)


def test_a_price_changes_dollars_and_no_ratio(mlcd: Mlcd, folder: Path):
    plain, dear = (
        mlcd("bench", "scale", folder, "--search", "full", *more, "-o", "json").document
        for more in ((), ("--usd-per-node-hour", "7"))
    )
    for one, other in zip(plain["configurations"], dear["configurations"], strict=True):
        assert other["actual_usd"] == pytest.approx(7 * one["actual_usd"])
    assert [c["ratio"] for c in dear["choices"]] == pytest.approx([c["ratio"] for c in plain["choices"]])


def test_the_table_can_be_read(mlcd: Mlcd, folder: Path):
    answer = mlcd("bench", "scale", folder)
    assert answer.code == 0
    assert all(name in answer.out for name in (*SEARCHES, "net", "lab", "RATIO", "numpy"))


def test_one_model_alone_has_nothing_stored_to_rank_by(mlcd: Mlcd, folder: Path):
    write(folder / "validation.csv", [row for row in run_rows() if row["model"] == "net"])
    document = mlcd("bench", "scale", folder, "-o", "json").document
    assert {row["search"] for row in document["choices"]} == set(SEARCHES) - {"none", "scavenger-none"}
    told = mlcd("bench", "scale", folder, "--search", "none").complaint
    assert "none learn from other models of the cluster" in told


def changed(rows: list[dict[str, Any]], name: str, value: Any) -> list[dict[str, Any]]:
    return [{**rows[0], name: value}, *rows[1:]]


@pytest.mark.parametrize(
    ("file", "rows", "told"),
    [
        ("validation.csv", changed(run_rows(), "metric", "nan"), "validation.csv:2: metric 'nan': expected a finite"),
        ("validation.csv", changed(run_rows(), "iteration", "x"), "validation.csv:2: iteration 'x': expected a number"),
        ("throughput.csv", changed(step_rows(), "step_time_s", 0), "step_time_s '0': expected more than 0"),
        ("throughput.csv", changed(step_rows(), "num_nodes", ""), "num_nodes '': expected a number"),
        ("throughput.csv", [{"model": "net", "cluster": "lab"}], "throughput.csv:1: no column num_nodes"),
    ],
)
def test_a_file_that_cannot_be_used_gets_one_line(mlcd: Mlcd, folder: Path, file: str, rows: Any, told: str):
    write(folder / file, rows)
    assert told in mlcd("bench", "scale", folder).complaint


def test_what_is_not_there_gets_one_line(mlcd: Mlcd, folder: Path):
    assert "no such folder" in mlcd("bench", "scale", folder / "none").complaint
    assert "did you mean 'net'?" in mlcd("bench", "scale", folder, "--model", "nett").complaint
    assert "did you mean 'lab'?" in mlcd("bench", "scale", folder, "--cluster", "labb").complaint
    assert "did you mean 'partial'?" in mlcd("bench", "scale", folder, "--search", "partiall").complaint
    (folder / "validation.csv").write_text("model,global_batch,epoch,iteration,metric,grad_sqr,grad_var\n")
    assert "validation.csv: it has no rows" in mlcd("bench", "scale", folder).complaint
    (folder / "validation.csv").unlink()
    assert "validation.csv: cannot be read" in mlcd("bench", "scale", folder).complaint


def test_runs_without_noise_get_one_line(mlcd: Mlcd, folder: Path):
    write(folder / "validation.csv", [{**row, "grad_sqr": "nan"} for row in run_rows()])
    assert "has no gradient noise" in mlcd("bench", "scale", folder, "--search", "full").complaint


def test_a_model_without_noise_is_left_out_in_one_line_and_the_others_go_on(mlcd: Mlcd, folder: Path):
    rows = [{**row, "grad_sqr": 0, "grad_var": 0} if row["model"] == "sibling" else row for row in run_rows()]
    write(folder / "validation.csv", rows)
    answer = mlcd("bench", "scale", folder, "-o", "json")
    told = "sibling: the run at batch 128 has no gradient noise to its target"
    assert (answer.code, answer.err) == (0, f"left out: {told}\n")
    assert answer.document["left_out"] == [told]
    assert {choice["model"] for choice in answer.document["choices"]} == {"net"}
    assert told in mlcd("bench", "scale", folder, "--model", "sibling").complaint
    assert mlcd("bench", "scale", folder, "--model", "net", "--search", "full").err == "", "the other model is not used"


def test_batches_without_a_step_time_get_one_line(mlcd: Mlcd, folder: Path):
    write(folder / "validation.csv", [{**row, "global_batch": 7_000_000} for row in run_rows()])
    assert "nothing to compare" in mlcd("bench", "scale", folder).complaint


@pytest.fixture(scope="module")
def pollux() -> Folder:
    if not SHARED.is_dir():
        pytest.skip("the measurements of Pollux are not at ../shared/data/elastic/pollux")
    return read_folder(SHARED)


def test_real_runs_are_predicted_within_the_goal(mlcd: Mlcd, pollux: Folder):
    models = "cifar10,imagenet,yolov3"
    document = mlcd("bench", "scale", pollux.path, "--model", models, "--cluster", "aws", "-o", "json").document
    pooled = {line["search"]: line for line in document["pooled"]}
    for search, median, p90, ratio in (("full", 0.08, 0.25, 1.10), ("partial", 0.12, 0.35, 1.15)):
        assert pooled[search]["median_error"] <= median
        assert pooled[search]["p90_error"] <= p90
        assert pooled[search]["p95_ratio"] <= ratio
        assert pooled[search]["unseen_coverage"] >= 0.8
        assert pooled[search]["median_error"] < pooled[f"scavenger-{search}"]["median_error"]


@pytest.mark.parametrize("model", ["bert", "cifar10", "imagenet", "yolov3"])
def test_real_epochs_rise_with_the_batch_and_two_short_starts_show_it(pollux: Folder, model: str):
    found = problem(pollux, model, "aws")
    assert found is not None
    assert found.runs[0].samples < found.runs[-1].samples
    small, large = early_samples(found)
    assert small < large


def test_recorded_noise_is_of_the_smallest_batch_as_the_recorded_progress_confirms(pollux: Folder):
    """AdaScale's gain at batch B, (phi + 1) / (phi B0 / B + 1), is what `progress` adds up."""
    with (SHARED / "validation.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == "imagenet"]
    for batch in ("800", "3200", "12800"):
        looks = [row for row in rows if row["global_batch"] == batch][45:]
        at, done, sqr, var = (
            np.array([float(row[name]) for row in looks]) for name in ("iteration", "progress", "grad_sqr", "grad_var")
        )
        phi = (var / sqr)[1:]
        gain = (phi + 1) / (phi * 200 / float(batch) + 1)
        assert np.median(np.diff(done) / np.diff(at) / gain) == pytest.approx(1.0, abs=0.05)
