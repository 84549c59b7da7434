"""How far the answers of an int8 model agree with the model's own, on samples of the user's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agreement:
    """`share`: 1 where every answer agrees. `samples`: how many were compared.

    `measure`: 'top class' (the share of samples with the same), 'cosine' (the mean) or 'relative error' (one minus it).
    `least`: below this int8 is not tried.
    """

    share: float
    samples: int
    measure: str
    least: float

    @property
    def enough(self) -> bool:
        """Whether int8 may be tried."""
        return self.share >= self.least

    def __str__(self) -> str:
        if self.measure == "top class":
            return f"same top class as fp32 on {100 * self.share:.4g} % of {self.samples} inputs"
        value = self.share if self.measure == "cosine" else 1 - self.share
        return f"{self.measure} {value:.4g} against fp32 on {self.samples} inputs"
