"""The keys under `model:` of a job file: a Hugging Face config, or the sizes of the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationInfo, WithJsonSchema, model_validator

from mlcd.core.errors import UserError
from mlcd.core.units import format_count, parse_flag
from mlcd.planners.jobfile.keys import Count, Keys, Size
from mlcd.planners.modeling.architecture import Architecture, architecture_of, read_config

NEEDED = ("layers", "hidden", "heads")
"""Sizes without which nothing can be computed."""
NAMES = {
    "layers": "num_hidden_layers", "hidden": "hidden_size", "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads", "head_dim": "head_dim", "vocab": "vocab_size", "ffn": "intermediate_size",
    "experts": "num_experts", "experts_per_token": "num_experts_per_tok", "expert_hidden": "moe_intermediate_size",
}  # fmt: skip
"""Our keys and their names in a Hugging Face config."""
ALIKE = 1.5
"""The stated number of parameters may differ from the counted one by this factor: norms, biases and heads are not all
known."""


def _config(written: Any, info: ValidationInfo) -> Architecture:
    """Read a config: a path relative to the job file, a folder with a config.json, or its content as a mapping."""
    folder: Path | None = (info.context or {}).get("folder")
    try:
        if isinstance(written, dict):
            return any_architecture(written, "config")
        if not isinstance(written, str) or not written:
            raise ValueError(f"'{written}': expected the path of a config.json")
        if folder is None:
            raise ValueError(
                f"'{written}': a service reads no file of yours; write the sizes: layers, hidden, heads ..., "
                "or what is in the file below `config:`"
            )
        return any_architecture(*read_config(folder / Path(written).expanduser()))
    except UserError as error:
        raise ValueError(str(error)) from None
    except (ArithmeticError, AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"config: not one of a language model: {type(error).__name__}, {error}") from None


def any_architecture(config: dict[str, Any], where: str) -> Architecture:
    """The architecture of a text model, or of an image-only one, which has no vocabulary."""
    return architecture_of(config if "image_size" not in config else {"vocab_size": 0, **config}, where)


class ModelKeys(Keys):
    """The model that is trained. `encoder`: it has no vocabulary and makes no text, as a vision transformer."""

    config: Annotated[Architecture | None, BeforeValidator(_config), WithJsonSchema({"type": ["string", "object"]})] = (
        None
    )
    """A Hugging Face config.json, the folder with one, or its content; then no other key."""
    params: Count = None
    """Number of parameters, such as 8.03B, if you know it better than the sizes tell."""
    layers: Size = None
    """Number of layers."""
    hidden: Size = None
    """Width of a layer."""
    heads: Size = None
    """Heads of attention."""
    kv_heads: Size = None
    """Heads of keys and values; else as many as `heads`."""
    head_dim: Size = None
    """Width of a head; else `hidden` / `heads`."""
    vocab: Size = None
    """Words of the vocabulary."""
    ffn: Size = None
    """Width of a feed-forward layer; else 4 x `hidden`."""
    experts: Size = None
    """Mixture of experts: number of experts of a layer."""
    experts_per_token: Size = None
    """Mixture of experts: experts that process each token."""
    expert_hidden: Size = None
    """Mixture of experts: width of an expert."""
    tied: Annotated[bool, BeforeValidator(parse_flag)] = False
    """The output layer is the embedding."""
    encoder: Annotated[bool, BeforeValidator(parse_flag)] = False
    """No vocabulary and no text, as a vision transformer: `sequence` counts its patches."""

    @model_validator(mode="after")
    def _sizes_are_given_once(self) -> ModelKeys:
        if self.config is not None:
            if more := sorted(self.model_fields_set - {"config"}):
                raise ValueError(f"model: `config` has all sizes; leave out `{more[0]}`")
            return self
        missing = [name for name in (*NEEDED, *(() if self.encoder else ("vocab",))) if getattr(self, name) is None]
        if missing:
            ways = "say `config: config.json`, or `layers`, `hidden`, `heads` and `vocab`"
            raise ValueError(f"model: `{missing[0]}` is missing; {ways}")
        if self.head_dim is None and (self.hidden or 0) % (self.heads or 1):
            raise ValueError(f"model: heads {self.heads} does not divide hidden {self.hidden}; correct one")
        if self.kv_heads is not None and (self.heads or 0) % self.kv_heads:
            raise ValueError(f"model: kv_heads {self.kv_heads} does not divide heads {self.heads}; correct one")
        counted = self._counted.params_b * 1e9
        if self.params is not None and not counted / ALIKE <= self.params <= counted * ALIKE:
            makes = f"its sizes make {format_count(counted)}; correct them, or leave `params` out"
            raise ValueError(f"model: params {format_count(self.params)}, but {makes}")
        return self

    @property
    def architecture(self) -> Architecture:
        """The sizes, with the stated number of parameters, else the counted one."""
        if self.config is not None:
            return self.config
        counted = self._counted
        factor = 1.0 if self.params is None else self.params / (counted.params_b * 1e9)
        return replace(counted, params_b=counted.params_b * factor, active_b=counted.active_b * factor)

    @property
    def _counted(self) -> Architecture:
        config = {name: value for key, name in NAMES.items() if (value := getattr(self, key)) is not None}
        kind = "vit" if self.encoder else ""
        return architecture_of(
            {"vocab_size": 0, "model_type": kind, "tie_word_embeddings": self.tied, **config}, "model"
        )
