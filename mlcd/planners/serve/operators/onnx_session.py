"""ONNX Runtime: a session for a model, and its errors in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlcd.core.errors import MissingExtra, UserError

LONGEST = 300
"""Most characters of a reason; the important part may be at its end."""
MOST_READ = 4_000
"""Most characters of a message that are parsed, from both ends: node names can be very long."""
_FATAL_ONLY = 4
"""ONNX Runtime's log level: its errors are raised as exceptions anyway."""


def open_session(path: Path | str, threads: int = 1, profile_to: Path | None = None) -> Any:
    """An onnxruntime.InferenceSession on the CPU with all graph optimisations, as in a server.

    `profile_to`: prefix of the file for a profile of every run until `end_profiling`; a date is appended.
    """
    runtime = _runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = _FATAL_ONLY
    if profile_to is not None:
        options.enable_profiling, options.profile_file_prefix = True, str(profile_to)
    with runtime_errors(path):
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@contextmanager
def runtime_errors(path: Path | str) -> Iterator[None]:
    """Turn errors of ONNX Runtime into `UserError` with its reason."""
    try:
        yield
    except MemoryError:
        raise UserError(f"{path}: this machine has not enough memory for it; try a smaller batch") from None
    except Exception as error:  # its errors have no common base class
        if not type(error).__module__.startswith("onnxruntime") and not isinstance(error, RuntimeError | ValueError):
            raise
        raise UserError(f"{path}: ONNX Runtime cannot run it: {reason(str(error))}") from error


def reason(message: str) -> str:
    """ONNX Runtime's message without its file names and codes, in one line of limited length."""
    text = " ".join(_cut(message, MOST_READ).split())
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ", "", text)
    text = re.sub(r"^Load model from .*? failed: ?", "", text)
    text = re.sub(r"(?<!\S)\S*/onnxruntime/\S+:\d+ .*?(?= \S+ was false| [A-Z])", "", text).strip()
    text = re.sub(r'^.*?In Node, \("([^"]*)", (\w+),.*, Error (.*)$', r"node '\1' (\2): \3", text)
    return _cut(text, LONGEST)


def _cut(text: str, most: int) -> str:
    """The text, shortened in the middle if it is too long."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtra("running ONNX models", "serve") from None
    return onnxruntime
