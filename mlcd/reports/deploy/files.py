"""What an export is made of: its files, where every knob went, and the words on top of each file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlcd.reports.deploy.deployment import Deployment, Told

MODEL = "1/model.onnx"
"""Where Triton looks for the first version of a model, in its folder."""
REPOSITORY = "model_repository"
QUANTISE = (
    "python -c \"from onnxruntime.quantization import *; quantize_dynamic('MODEL', '{}', weight_type=QuantType.QInt8)\""
)


@dataclass(frozen=True)
class Export:
    """`files`: by their path in the folder. `main`: the one to show alone. `model_at`: where the model's file goes.
    `start`: the command that uses the folder.
    """

    files: Mapping[str, str]
    main: str
    told: tuple[Told, ...]
    model_at: str
    start: str

    @property
    def missing(self) -> tuple[Told, ...]:
        """The knobs that are not in the files."""
        return tuple(each for each in self.told if not each.where)


def header(deployment: Deployment, told: tuple[Told, ...]) -> str:
    """Comments: what was chosen by which run, and where every knob went."""
    lines = [f"Chosen by MLCD in run {deployment.run} ({deployment.source}): {deployment.said}"]
    lines += [str(each) for each in told]
    return "".join(f"# {each}\n" for each in lines)


def readme(deployment: Deployment, told: tuple[Told, ...], folder: str, start: str, *more: str) -> str:
    """How to use the folder, and what is not in it."""
    at = f"{folder}/{MODEL}"
    model = f"The model's file belongs at `{at}`." if deployment.as_it_is else _other(deployment, at)
    parts = [
        f"# {deployment.name}, as MLCD chose it",
        f"Run {deployment.run}: {deployment.said}.",
        f"These figures are {deployment.source}. Another server, or another machine, has its own: load it before you "
        "count on them. A limit on memory is that of the trial: a server that is ended for want of it needs more.",
        model,
        *more,
        f"Start it with `{start}`.",
        "\n".join(["Every knob, and where it went:", "", *(f"- {each}" for each in told)]),
    ]
    return "\n\n".join(parts) + "\n"


def _other(deployment: Deployment, at: str) -> str:
    said = f"The model's file, at the precision that was chosen, belongs at `{at}`."
    if "int8" in deployment.settings.values():
        said += f" MLCD's own server makes it with `{QUANTISE.format(at)}`."
    return said
