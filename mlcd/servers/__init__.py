"""Our own small server for ONNX models, with dynamic batching: `python -m mlcd.servers MODEL --threads 2 --batch 8`."""

from mlcd.servers.cores import other_cores
from mlcd.servers.memory import OUT_OF_MEMORY, peak_gb
from mlcd.servers.precision import at_precision
from mlcd.servers.settings import PRECISIONS, UNSUPPORTED, Settings

__all__ = ["OUT_OF_MEMORY", "PRECISIONS", "UNSUPPORTED", "Settings", "at_precision", "other_cores", "peak_gb"]
