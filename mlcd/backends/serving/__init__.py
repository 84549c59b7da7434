"""Servers to test: our own, any that speaks the Open Inference Protocol, and recorded ones."""

from mlcd.backends.serving.embedded import Embedded
from mlcd.backends.serving.open_inference import OpenInference
from mlcd.backends.serving.recorded import RecordedService

__all__ = ["Embedded", "OpenInference", "RecordedService"]
