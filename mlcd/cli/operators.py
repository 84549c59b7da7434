"""mlcd operators: the operators of an ONNX model, and which of them are key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, output, parsed_by, print_json, shapes
from mlcd.core.units import parse_share
from mlcd.planners.serve.model_facts import Profile
from mlcd.planners.serve.operators import key_operators, open_model, parts, profile_onnx
from mlcd.planners.serve.operators.onnx_file import OnnxModel
from mlcd.planners.serve.operators.onnx_profile import Part, family, kind_of_input

LARGEST_BATCH = 4_096


@click.command()
@click.argument("model_path", metavar="MODEL", type=click.Path(path_type=Path))
@click.option(
    "--batch",
    type=click.IntRange(1, LARGEST_BATCH),
    help="Samples in a pass. Default: 8, or the model's fixed batch size.",
)
@shapes
@click.option(
    "--threshold",
    metavar="SHARE",
    default="5%",
    show_default=True,
    callback=parsed_by(parse_share),
    help="Share of the time or memory from which on an operator is a key operator.",
)
@output
def operators(model_path: Path, batch: int | None, shapes: Mapping[str, int], threshold: float, output: str) -> None:
    """List the operators of an ONNX model, and their share of its time.

    Those that take much of the time or of the memory are its key operators.

    \b
    mlcd operators model.onnx
    """
    model = open_model(model_path)
    (profile,) = profile_onnx(model, (batch or model.batch or 8,), shapes)
    listed, key = parts(profile, threshold), key_operators(profile, threshold)
    if output == "json":
        print_json(_document(model, profile, listed, key, threshold, shapes))
        return
    results, _ = consoles()
    table = plain_table(("operator", ""), ("calls", "time ms", "of time", "memory MB", "of memory"))
    for part in listed:
        each = part.operator
        table.add_row(
            each.name,
            "KEY" if part.key else "",
            str(each.calls),
            f"{1_000 * each.seconds:.3f}",
            f"{part.time_share:.1%}",
            f"{each.memory_mb:.2f}",
            f"{part.memory_share:.1%}",
        )
    results.print(table)
    count = f"{model.parameters / 1e6:,.1f} M" if model.parameters >= 1e5 else f"{model.parameters:,}"
    results.print(
        f"{model_path.name}: {count} parameters, {model.weights_mb:,.1f} MB of weights; a pass "
        f"of {profile.batch} takes {1_000 * profile.seconds:,.3g} ms on one core. "
        f"Key operators: {', '.join(key) or 'none'}.",
        markup=False,
        soft_wrap=True,
    )


def _document(
    model: OnnxModel,
    profile: Profile,
    listed: tuple[Part, ...],
    key: tuple[str, ...],
    threshold: float,
    shapes: Mapping[str, int],
) -> dict[str, Any]:
    return {
        "model": model.path.stem,
        "path": str(model.path),
        "family": family(model),
        "input_kind": kind_of_input(model, shapes),
        "inputs": [{"name": one.name, "dtype": one.dtype, "shape": list(one.shape)} for one in model.inputs],
        "parameters": model.parameters,
        "weights_mb": model.weights_mb,
        "precision": profile.precision,
        "batch": profile.batch,
        "threshold": threshold,
        "seconds": profile.seconds,
        "memory_mb": profile.memory_mb,
        "operators": [
            {
                **asdict(part.operator),
                "share_of_time": part.time_share,
                "share_of_memory": part.memory_share,
                "key": part.key,
            }
            for part in listed
        ],
        "key_operators": list(key),
    }
