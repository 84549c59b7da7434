"""The shipped knowledge bases are large enough and complete, and state their sources."""

from __future__ import annotations

import pytest

from mlcd.core.errors import UnknownName
from mlcd.planners.serve.known_models import Kind, knowledge_bases
from mlcd.planners.serve.nouns import Figure

shipped = knowledge_bases()
FAMILIES = {"cnn", "transformer", "rnn", "gan", "recsys"}
CELLS = {"cpu": ("precision", "threads", "batch"), "h200": ("precision", "sm_share", "batch")}


def test_a_cpu_and_an_h200_are_known():
    assert list(shipped.readers()) == ["cpu", "h200"]


@pytest.mark.parametrize("name", ["cpu", "h200"])
def test_at_least_twenty_models_of_five_families_were_measured_everywhere(name: str):
    knowledge = shipped.load(name)
    assert knowledge.kind is Kind.DEVICE
    assert knowledge.anatomy.cell == CELLS[name]
    assert len(knowledge.models) >= 20
    assert {model.facts.family for model in knowledge.models} >= FAMILIES
    everywhere = {cell for model in knowledge.models for cell in model.cells}
    for model in knowledge.models:
        assert len(model.cells) >= 0.6 * len(everywhere), model.facts.name


@pytest.mark.parametrize("name", ["cpu", "h200"])
def test_each_model_has_its_size_its_operators_and_its_memory(name: str):
    for model in shipped.load(name).models:
        facts = model.facts
        assert facts.weights_mb is not None, facts.name
        assert {profile.batch for profile in facts.profiles} == {8, 64}, facts.name
        assert all(cell.peak_gb and cell.figures for cell in model.cells.values()), facts.name


def test_on_the_h200_the_rate_is_the_batch_over_the_median_latency():
    for model in shipped.load("h200").models:
        for knobs, cell in model.cells.items():
            batch = float(dict(knobs)["batch"])
            assert cell.rate == pytest.approx(batch / cell.figures[Figure.P50], rel=1e-6)


def test_on_the_cpu_no_more_is_answered_than_its_clients_can_ask():
    """Little's law: two clients for each place in a batch wait for their answers, and ask again."""
    for model in shipped.load("cpu").models:
        for knobs, cell in model.cells.items():
            clients = max(2.0, 2 * float(dict(knobs)["batch"]))
            assert cell.rate * cell.figures[Figure.P50] <= 1.2 * clients, (model.facts.name, knobs)


def test_the_h200_knowledge_includes_host_preprocessing():
    knowledge = shipped.load("h200")
    assert knowledge.anatomy.host == "cpu_cores"
    for model in knowledge.models:
        assert len(knowledge.host_rates[model.facts.inputs]) >= 5


@pytest.mark.parametrize("name", ["cpu", "h200"])
def test_it_states_on_what_when_and_how_it_was_measured(name: str):
    source = shipped.load(name).source
    assert "measured 20" in source
    assert "mlcd" in source
    assert {"cpu": "onnxruntime", "h200": "NVIDIA H200"}[name] in source


def test_another_name_is_refused():
    with pytest.raises(UnknownName, match="h200"):
        shipped.load("h20")
