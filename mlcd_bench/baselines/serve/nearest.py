"""The nearest model: the best configurations of the seen language model that is most similar to the unseen one.

Similarity: the distance between logs of sizes and of the lengths of requests, each difference counting equally.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.core.errors import UserError
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd.planners.serve.known_models import Knowledge
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import service_of
from mlcd_bench.baselines.serve.candidates import over, untried
from mlcd_bench.baselines.serve.features import seen_values
from mlcd_bench.baselines.serve.popular import NOTHING_SEEN, best_then_cheapest


@dataclass(frozen=True)
class Nearest:
    """It learns nothing from its trials: the order is fixed before the first one. Deterministic."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The best untried configuration for the nearest seen model, then for the next nearest."""
        open_ = untried(job, space, history)
        if (end := over(job, history, open_)) is not None:
            return end
        y, own = seen_values(self.knowledge, job, space).y, sizes(service_of(job).model)
        models = self.knowledge.models
        away = [float(np.linalg.norm(sizes(model.facts) - own)) for model in models]
        for m in np.argsort(away, kind="stable"):
            if y[m][open_].max() > 0:
                pick = best_then_cheapest(y[m], space, open_)
                return Probe(
                    space.configurations[pick], f"the best for {models[m].facts.title}, the nearest seen model"
                )
        return Probe(space.configurations[best_then_cheapest(np.zeros(len(space)), space, open_)], NOTHING_SEEN)


def sizes(facts: ModelFacts) -> Floats:
    """The features of similarity: logs of parameters, of active ones, and of tokens in and out of a request."""
    architecture, prompts = facts.architecture, facts.prompts
    if architecture is None or prompts is None:
        raise UserError(f"nearest compares sizes of language models, and those of {facts.name} are unknown")
    return np.log([architecture.params_b, architecture.active_b, prompts.input_tokens, prompts.output_tokens])
