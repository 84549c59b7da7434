"""Elastic forecasts on held-out models: a section of the held-out study.

    python -m benchmarks.splits.elastic ../shared

It uses only code that earlier versions have, too (mlcd_bench.scale), so the same file measures both: run it with
another version on PYTHONPATH.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path

import numpy as np

from benchmarks.splits.made_elastic import Trait, made_folder
from mlcd.core.errors import UserError
from mlcd.core.version import VERSION
from mlcd_bench.scale import Choice, Folder, Problem, Row, pool, problem, read_folder, score
from mlcd_bench.scale.folder import Run

Scored = tuple[list[Row], list[Choice]]
SEARCHES = ("full", "partial")
REFERENCES = ("smallest", "middle", "largest")
THINNED_TO = (5, 10, 20)
"""Numbers of looks that are kept of a real run with 50 to 100."""
MADE_TUNED, MADE_HELD_OUT = range(60), range(5000, 5120)
ANOTHER_LAW_TUNED = range(2000, 2040)
TRAITS = {
    Trait.MISLEADING_STARTS: (range(3000, 3040), range(6000, 6060)),
    Trait.TWO_TO_FOUR_LOOKS: (range(3100, 3140), range(6100, 6160)),
}
"""Seeds for tuning and held out; every second model follows another law."""
SPLIT = (
    "By model and cluster: tuned on cifar10 and imagenet on aws, on the same runs thinned to 5, 10 and 20 looks, and "
    "on 180 made models (seeds 0 to 59 of the critical-batch law, 2000 to 2039 of another, 3000 to 3039 with starts "
    "that mislead, 3100 to 3139 looked at 2 to 4 times); held out were yolov3 and bert everywhere, cifar10 and "
    "imagenet on azure and dgx-ext, yolov3 thinned, and 240 made models (seeds 5000 to 5119, half of another law; 6000 "
    "to 6059 and 6100 to 6159 with the two traits). How often each was looked at: docs/methods/scavenger.md."
)


@dataclass(frozen=True)
class Part:
    """Problems that share one row, and whether they were used for tuning."""

    name: str
    tuned: bool
    problems: tuple[Problem, ...]


def parts(shared: Path, tuned_only: bool = False) -> Iterator[Part]:
    """Every part of the split; `tuned_only`: without the held-out parts."""
    folder = read_folder(shared / "data" / "elastic" / "pollux")
    shown, others = ("cifar10", "imagenet"), ("azure", "dgx-ext")
    yield Part("cifar10, imagenet on aws", True, _problems(folder, shown, ("aws",)))
    yield Part("the same, few looks", True, _thinned(folder, shown, ("aws",)))
    yield Part("made, critical batch", True, _made(MADE_TUNED, bent=False))
    yield Part("made, another law", True, _made(ANOTHER_LAW_TUNED, bent=True))
    yield from (Part(f"made, {trait}", True, _unlike(seeds, trait)) for trait, (seeds, _) in TRAITS.items())
    if tuned_only:
        return
    yield Part("yolov3", False, _problems(folder, ("yolov3",), ("aws", *others)))
    yield Part("yolov3, few looks", False, _thinned(folder, ("yolov3",), ("aws", *others)))
    yield Part("bert", False, _problems(folder, ("bert",), ("aws", *others)))
    yield Part("cifar10, imagenet elsewhere", False, _problems(folder, shown, others))
    yield Part("made, critical batch", False, _made(MADE_HELD_OUT[::2], bent=False))
    yield Part("made, another law", False, _made(MADE_HELD_OUT[1::2], bent=True))
    yield from (Part(f"made, {trait}", False, _unlike(seeds, trait)) for trait, (_, seeds) in TRAITS.items())


def run(shared: Path) -> list[dict[str, object]]:
    """A row for each part, reference and search; and for all held-out parts together, real and made."""
    rows: list[dict[str, object]] = []
    together: dict[tuple[str, str, str], Scored] = {}
    for part in parts(shared):
        for reference, search in product(REFERENCES, SEARCHES):
            scored = _scored(part.problems, reference, search)
            rows.append(_row(part.name, part.tuned, reference, search, scored))
            if not part.tuned:
                kind = f"all {'made' if part.name.startswith('made') else 'real'}"
                before = together.get((kind, reference, search), ([], []))
                together[kind, reference, search] = (before[0] + scored[0], before[1] + scored[1])
    return rows + [_row(kind, False, *of, scored) for (kind, *of), scored in together.items()]


def _scored(problems: Sequence[Problem], reference: str, search: str) -> Scored:
    """Score every configuration and choice; problems whose reference has no readable noise are left out."""
    rows, choices = [], []
    for one in problems:
        with suppress(UserError):
            its_rows, its_choices = score(one, search, reference, [])
            rows += its_rows
            choices += its_choices
    return rows, choices


def _row(name: str, tuned: bool, reference: str, search: str, scored: Scored) -> dict[str, object]:
    """Figures of the configurations at other batches than the reference, which no search knows."""
    rows, choices = scored
    [pooled] = pool(rows, choices)
    return {
        "part": name,
        "split": "tuned" if tuned else "held out",
        "reference": reference,
        "search": search,
        "n": pooled.unseen,
        "median_error": pooled.unseen_median_error,
        "p90_error": pooled.unseen_p90_error,
        "hold": pooled.unseen_coverage,
        "width": _width([row.interval for row in rows if row.global_batch != row.reference_batch]),
        "choice_mean": pooled.mean_ratio,
        "choice_p95": pooled.p95_ratio,
    }


def _width(intervals: Sequence[tuple[float, float] | None]) -> float:
    """The median over intervals of sqrt(end / start): 1.2 is about +- 20 %."""
    return float(np.median([(each[1] / each[0]) ** 0.5 for each in intervals if each is not None]))


def _problems(folder: Folder, models: Sequence[str], clusters: Sequence[str]) -> tuple[Problem, ...]:
    made = (problem(folder, model, cluster) for model in models for cluster in clusters)
    return tuple(one for one in made if one is not None)


def _thinned(folder: Folder, models: Sequence[str], clusters: Sequence[str]) -> tuple[Problem, ...]:
    """Real runs with fewer looks: of every so many the last is kept."""
    coarse = (
        replace(folder, runs={model: tuple(_thin(one, looks) for one in folder.runs[model]) for model in models})
        for looks in THINNED_TO
    )
    return tuple(chain.from_iterable(_problems(one, models, clusters) for one in coarse))


def _thin(run: Run, looks: int) -> Run:
    every = len(run.metric) // looks
    kept = slice(every - 1, None, every)
    return Run(run.global_batch, run.iterations[kept], run.metric[kept], run.grad_sqr[kept], run.grad_var[kept])


def _made(seeds: Sequence[int], bent: bool) -> tuple[Problem, ...]:
    return _of(made_folder(seed, bent) for seed in seeds)


def _unlike(seeds: Sequence[int], trait: Trait) -> tuple[Problem, ...]:
    return _of(made_folder(seed, seed % 2 == 1, trait) for seed in seeds)


def _of(folders: Iterable[Folder]) -> tuple[Problem, ...]:
    return tuple(chain.from_iterable(_problems(folder, folder.models, folder.clusters) for folder in folders))


def main() -> None:
    """Print every row."""
    print(f"MLCD {VERSION}, numpy {np.__version__}; {SPLIT}")
    print(f"{'part':30} {'split':9} {'reference':9} {'search':8} {'n':>5} median   p90  hold width  choice mean p95")
    for row in run(Path(sys.argv[1])):
        print(
            f"{row['part']:30} {row['split']:9} {row['reference']:9} {row['search']:8} {row['n']:5} "
            f"{row['median_error']:6.1%} {row['p90_error']:6.1%} {row['hold']:4.0%} {row['width']:5.2f}  "
            f"{row['choice_mean']:.2f} {row['choice_p95']:.2f}"
        )


if __name__ == "__main__":
    main()
