"""mlcd learn: measure models and operators on this machine into a knowledge base for searches."""

from __future__ import annotations

from pathlib import Path

import click

from mlcd.cli.options import consoles, shapes

CUDA_MINUTES = 60.0
"""More than a complete run takes on a fast GPU."""
_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.option("--models", metavar="DIR", type=_FOLDER, help="A folder of .onnx files: all of them are measured.")
@click.option(
    "--zoo", metavar="DIR", type=_FOLDER, help="Write MLCD's own small ONNX models there, and measure nothing."
)
@click.option(
    "--knobs", metavar="FILE", type=click.Path(path_type=Path), help="What to vary: precision, threads, batch."
)
@click.option(
    "--to", metavar="DIR", type=_FOLDER, help="Where the knowledge goes; $MLCD_HOME/knowledge/NAME of --models."
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True, help="What to measure.")
@click.option("--operators/--no-operators", default=True, show_default=True, help="Also measure single operators.")
@click.option(
    "--by",
    type=click.Choice(["trials", "passes"]),
    default="trials",
    show_default=True,
    help="Load tests of MLCD's server, as in `mlcd serve`; or timed passes in process: quicker, without the server.",
)
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="With cuda: stop after this time.")
@shapes
def learn(
    models: Path | None,
    zoo: Path | None,
    knobs: Path | None,
    to: Path | None,
    device: str,
    operators: bool,
    by: str,
    minutes: float | None,
    shapes: dict[str, int],
) -> None:
    """Measure models for `mlcd serve --knowledge`.

    Writes models and their operators into a knowledge base. It continues where it stopped. On a GPU the models are
    PyTorch's, with random weights.

    \b
    mlcd learn --zoo zoo
    mlcd learn --models zoo --knobs knobs.yaml
    """
    if zoo is not None:
        _write_zoo(zoo)
    elif device == "cuda":
        _learn_cuda(to, minutes)
    elif models is None or knobs is None:
        raise click.UsageError("give --models DIR and --knobs FILE; --zoo DIR writes some models")
    else:
        _learn_cpu(models, knobs, to, shapes, operators, served=by == "trials")


def _write_zoo(folder: Path) -> None:
    from mlcd_bench.learn.zoo_models import write_zoo

    paths = write_zoo(folder)
    consoles()[0].print(
        f"{folder}: {len(paths)} models; measure them with mlcd learn --models {folder} --knobs FILE",
        soft_wrap=True,
        markup=False,
    )


def _learn_cuda(to: Path | None, minutes: float | None) -> None:
    from mlcd.core.home import home
    from mlcd_bench.learn.on_gpu import main

    folder = to or home() / "knowledge" / "cuda"
    main(["--to", str(folder), "--minutes", str(minutes or CUDA_MINUTES)])


def _learn_cpu(
    models: Path, knobs: Path, to: Path | None, shapes: dict[str, int], operators: bool, *, served: bool
) -> None:
    from datetime import UTC, datetime

    from mlcd.cli.signals import stop_on_ctrl_c
    from mlcd.core.errors import Interrupted, UserError
    from mlcd.core.home import home
    from mlcd.core.units import counted
    from mlcd.planners.serve.space import load_knobs
    from mlcd_bench.learn.cells_process import Stopped
    from mlcd_bench.learn.on_cpu import Cells, Learning, describe

    results, progress = consoles()
    cells = Cells.of(load_knobs(knobs).table)
    paths = sorted(models.glob("*.onnx"))
    if not paths:
        raise UserError(f"{models}: no .onnx file there; `mlcd learn --zoo {models}` writes some")
    folder = to or home() / "knowledge" / models.resolve().name
    command = f"mlcd learn --models {models} --knobs {knobs}"
    describe(folder, f"{datetime.now(UTC):%Y-%m-%d}", command, served=served)
    with stop_on_ctrl_c(progress, "this measurement", soon=True) as stopped:

        def tell(words: str) -> None:
            progress.print(words, highlight=False, markup=False, soft_wrap=True)

        learning = Learning(folder, cells, served, shapes, tell, stopped)
        try:
            ran = learning.models(paths)
            if operators:
                learning.operators()
        except (Stopped, KeyboardInterrupt):
            raise Interrupted(
                f"stopped; {folder} keeps what was measured: the same command continues from there"
            ) from None
    if not ran:
        raise UserError(f"{models}: no model could be measured, of {len(paths)}; see above")
    summary = f"{folder}: {counted(len(ran), 'model')}; use it with mlcd serve --knowledge {folder}"
    results.print(summary, soft_wrap=True, markup=False)
