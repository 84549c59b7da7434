"""ONNX Runtime: a session for a model, and its refusals on one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlcd.core.errors import MissingExtra, UserError

LONGEST = 300
"""Characters of a reason; what matters may be at its end."""
MOST_READ = 4_000
"""Characters of a message that are looked at, at both of its ends: a model may name its nodes as it likes."""
_FATAL_ONLY = 4
"""What ONNX Runtime may print by itself: its errors are told by us, on one line."""


def open_session(path: Path | str, threads: int = 1, profile_to: Path | None = None) -> Any:
    """An onnxruntime.InferenceSession on the CPU, all its graph optimisations on, as a server runs it.

    `profile_to`: where to write a profile, of every run until `end_profiling`; the name gets a date behind it.
    """
    runtime = _runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = _FATAL_ONLY
    if profile_to is not None:
        options.enable_profiling, options.profile_file_prefix = True, str(profile_to)
    with told_on_one_line(path):
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@contextmanager
def told_on_one_line(path: Path | str) -> Iterator[None]:
    """Whatever ONNX Runtime refuses inside is a `UserError` with its own reason."""
    try:
        yield
    except MemoryError:
        raise UserError(f"{path}: this machine has not enough memory for it; try a smaller batch") from None
    except Exception as error:  # its errors have no ancestor of their own
        if not type(error).__module__.startswith("onnxruntime") and not isinstance(error, RuntimeError | ValueError):
            raise
        raise UserError(f"{path}: ONNX Runtime cannot run it: {reason(str(error))}") from error


def reason(message: str) -> str:
    """What ONNX Runtime says, without its own file names and codes, on one line of a readable length."""
    text = " ".join(_cut(message, MOST_READ).split())
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ", "", text)
    text = re.sub(r"^Load model from .*? failed: ?", "", text)
    text = re.sub(r"(?<!\S)\S*/onnxruntime/\S+:\d+ .*?(?= \S+ was false| [A-Z])", "", text).strip()
    text = re.sub(r'^.*?In Node, \("([^"]*)", (\w+),.*, Error (.*)$', r"node '\1' (\2): \3", text)
    return _cut(text, LONGEST)


def _cut(text: str, most: int) -> str:
    """Its beginning and its end, where it is longer."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtra("running ONNX models", "serve") from None
    return onnxruntime
