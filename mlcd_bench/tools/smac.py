"""SMAC3: Bayesian optimisation with a random forest, its facade for hyperparameters.

Lindauer et al., 'SMAC3: A Versatile Bayesian Optimization Package for Hyperparameter Optimization', JMLR 2022.
How we interpret it: docs/methods/baselines.md.

The type is a categorical hyperparameter, the nodes a log-integer one. First points from its Sobol design, then its
default: a random forest over log J, log EI, one in five at random. A suggestion is moved to the nearest open
configuration. A failure is reported as a crash that cost as much as the worst that ran.

One part is not the default. EI is computed for random points, nearly all of so small a space, without SMAC's local
search: that depends on the order of a set, so that another process finds another of the many points that a forest
predicts to be equally good. It also takes ten times as long.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import exp
from pathlib import Path
from tempfile import TemporaryDirectory

from ConfigSpace import Categorical, ConfigurationSpace, Integer
from ConfigSpace import Configuration as Setting
from smac import HyperparameterOptimizationFacade, Scenario
from smac.acquisition.maximizer import RandomSearch
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.model.random_forest import RandomForest
from smac.runhistory import StatusType, TrialInfo, TrialValue

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Step
from mlcd_bench.baselines.train.candidates import Mask, generator
from mlcd_bench.tools.trials import FIRST, TRIALS, Trial, bounds, draw, nearest, next_trial

CHALLENGERS = 10_000
"""SMAC's default for the most points for which EI is computed."""
DRAWS = 10
"""Random points for each point of a small space, so that few are missed."""
LEAVES = 1_000
"""More than the trials of any search."""
QUIET = 50
"""Above all log levels that SMAC uses."""


class Sorted(RandomSearch):  # type: ignore[misc]
    """SMAC's random search, the largest EI first."""

    def _maximize(self, previous_configs: list[Setting], n_points: int) -> list[tuple[float, Setting]]:
        candidates: list[tuple[float, Setting]] = super()._maximize(previous_configs, n_points, _sorted=True)
        return candidates


@dataclass(frozen=True)
class SMAC3:
    """SMAC's facade for hyperparameters with its defaults."""

    seed: int = 0
    trials: int = TRIALS

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """What the facade asks for next."""

        def pick(open_: Mask, trials: list[Trial]) -> int:
            try:
                suggested = self._suggestion(space, history, trials)
            except ConfigurationSpaceExhaustedException:  # it drew tried configurations several times, and gave up
                return int(generator(self.seed, history).choice(open_.nonzero()[0]))
            return nearest(space, open_, int(suggested["type"]), int(suggested["nodes"]))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of fewer configurations than samples
            return next_trial(job, space, history, "smac3", self.trials, pick)

    def _suggestion(self, space: Space, history: History, trials: list[Trial]) -> Setting:
        types = Categorical("type", list(range(len(space.offers))))
        box = ConfigurationSpace([types, Integer("nodes", bounds(space), log=True)])
        # SMAC always writes its scenario to disk: into a temporary folder
        with TemporaryDirectory() as folder:
            first = len(trials) < FIRST
            # one design for the whole search, whatever else is drawn afresh at each step
            seed = self.seed if first else draw(self.seed, history)
            scenario = Scenario(box, deterministic=True, n_trials=self.trials, seed=seed, output_directory=Path(folder))
            points = FIRST if first else 0
            design = HyperparameterOptimizationFacade.get_initial_design(scenario, n_configs=points, max_ratio=1.0)
            if first:
                return design.select_configurations()[len(history.measurements) % FIRST]
            return _ask(scenario, design, space, trials)


def _ask(scenario: Scenario, design: object, space: Space, trials: list[Trial]) -> Setting:
    low, high = bounds(space)
    draws = min(CHALLENGERS, DRAWS * len(space.offers) * (high - low + 1))
    facade = HyperparameterOptimizationFacade(
        scenario,
        model=_forest(scenario),
        initial_design=design,
        acquisition_maximizer=Sorted(scenario.configspace, challengers=draws, seed=scenario.seed),
        logging_level=QUIET,
        overwrite=True,
    )
    for trial in trials:
        place = {"type": int(space.offer_index[trial.place]), "nodes": int(space.nodes[trial.place])}
        status = StatusType.SUCCESS if trial.ran else StatusType.CRASHED
        info = TrialInfo(Setting(scenario.configspace, place), seed=0)
        facade.tell(info, TrialValue(exp(trial.log_j), status=status), save=False)
    return facade.ask().config


def _forest(scenario: Scenario) -> RandomForest:
    """The facade's forest with room for a thousand leaves: by default each tree clears memory for a million."""
    return RandomForest(
        scenario.configspace,
        n_trees=10,
        ratio_features=1.0,
        min_samples_split=2,
        min_samples_leaf=1,
        max_leaf_nodes=LEAVES,
        log_y=True,
        n_jobs=1,
        seed=scenario.seed,
    )
