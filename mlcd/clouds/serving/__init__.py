"""Servers to test: our own, any that speaks the Open Inference Protocol, and recorded ones."""

from mlcd.clouds.serving.embedded import Embedded
from mlcd.clouds.serving.open_inference import OpenInference
from mlcd.clouds.serving.recorded import RecordedService

__all__ = ["Embedded", "OpenInference", "RecordedService"]
