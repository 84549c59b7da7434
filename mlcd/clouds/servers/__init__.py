"""Our own server for ONNX models, with dynamic batching: `python -m mlcd.clouds.servers MODEL --batch 8`."""

from mlcd.clouds.servers.cores import other_cores
from mlcd.clouds.servers.memory import OUT_OF_MEMORY, peak_gb
from mlcd.clouds.servers.precision import at_precision
from mlcd.clouds.servers.settings import PRECISIONS, UNSUPPORTED, Settings

__all__ = ["OUT_OF_MEMORY", "PRECISIONS", "UNSUPPORTED", "Settings", "at_precision", "other_cores", "peak_gb"]
