"""The CPU build of vLLM in its own environment, if it is installed: `make .venv-vllm/installed`."""

from __future__ import annotations

from pathlib import Path

import pytest

ENVIRONMENT = Path(__file__).parents[2] / ".venv-vllm"
PROGRAMS = ENVIRONMENT / "bin"
needs_vllm = pytest.mark.skipif(
    not (ENVIRONMENT / "installed").is_file(), reason="no vLLM here: make .venv-vllm/installed"
)
