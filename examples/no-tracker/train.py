"""Linear regression in plain Python. It does not use MLCD's tracker: a pattern in the job file reads its output."""

from __future__ import annotations

import random
import sys

BATCH, FEATURES = 64, 50


def main() -> None:
    steps = int(sys.argv[1])
    truth = [random.Random(0).gauss(0, 1) for _ in range(FEATURES)]
    weights = [0.0] * FEATURES
    for step in range(1, steps + 1):
        draw = random.Random(step)
        gradient, loss = [0.0] * FEATURES, 0.0
        for _ in range(BATCH):
            x = [draw.gauss(0, 1) for _ in range(FEATURES)]
            error = sum((w - t) * each for w, t, each in zip(weights, truth, x, strict=True))
            loss += error * error / BATCH
            gradient = [g + error * each / BATCH for g, each in zip(gradient, x, strict=True)]
        weights = [w - 0.1 * g for w, g in zip(weights, gradient, strict=True)]
        if step % 10 == 0:
            print(f"step {step}, loss {loss:.6f}")


if __name__ == "__main__":
    main()
