"""How well the outputs of the int8 model agree with those of the original, on the user's samples."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agreement:
    """The result of comparing int8 with the original model on `samples` inputs.

    `measure`: how `share` is defined: 'top class' (share of inputs with the same top class), 'cosine' (mean cosine
    similarity), or 'relative error' (1 - relative error). 1 is full agreement. `least`: below this, int8 is not tried.
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
