"""Weather: how a run may differ from its probe; the rows of `certificates.py`."""

from __future__ import annotations

from dataclasses import dataclass

ASSUMED_NOISE = 0.03
"""Relative error of a whole probe that the method assumes, in every row."""
BOOST_S = 900.0
"""How long the boost at the start lasts."""


@dataclass(frozen=True)
class Weather:
    """Conditions that every launch draws anew, probe or run.

    `between`: standard deviation of the log of a launch's own factor. `heavy_tails`: that log follows Student's t
    with 3 degrees of freedom, scaled to the same standard deviation, and not a normal distribution.
    `autocorrelation`: of two neighbouring samples of the rate, `samples_a_report` of which lie between two reports of
    a probe; the scatter of reports stays as it is, and so a whole probe is less sure. `noise_by_type`: each
    instance type has its own noise: the assumed one times a factor that is log-uniform between these.
    `decline`: the share of the rate that is lost, evenly, over the time that the job should take.
    `boost`: by which the first `BOOST_S` of every launch are faster.
    """

    name: str
    words: str
    between: float = 0.0
    heavy_tails: bool = False
    autocorrelation: float = 0.0
    samples_a_report: int = 5
    noise_by_type: tuple[float, float] | None = None
    decline: float = 0.0
    boost: float = 0.0

    @property
    def report_autocorrelation(self) -> float:
        """Autocorrelation of two neighbouring reports of a probe."""
        return self.autocorrelation**self.samples_a_report


ROWS = {
    row.name: row
    for row in (
        Weather("assumed", "nothing but the noise that was assumed"),
        Weather("between-2", "each run 2 % faster or slower than the last (sd)", between=0.02),
        Weather("between-3", "3 %", between=0.03),
        Weather("between-3-tails", "3 %, heavy tails", between=0.03, heavy_tails=True),
        Weather("between-5", "5 %", between=0.05),
        Weather("between-8", "8 %", between=0.08),
        Weather("correlated", "samples of a probe autocorrelated (0.9)", autocorrelation=0.9),
        Weather("correlated-3", "the same, and 3 % between runs", between=0.03, autocorrelation=0.9),
        Weather(
            "types-3", "noise that differs between types, and 3 % between runs", between=0.03, noise_by_type=(0.3, 3.0)
        ),
        Weather("decline-5", "a slow decline of 5 % over the run", decline=0.05),
        Weather("boost-5", "the first minutes 5 % faster than the rest", boost=0.05),
        Weather("boost-10", "the first minutes 10 % faster", boost=0.10),
    )
}

HARDER = {
    row.name: row
    for row in (
        Weather(
            "correlated-reports", "reports themselves autocorrelated (0.9)", autocorrelation=0.9, samples_a_report=1
        ),
    )
}
"""Not in the table: a probe of 30 such reports has an error of 11 %, not 3 %."""

ALL = ROWS | HARDER
