"""The clouds that can be searched and run on."""

from mlcd.backends.recorded import Recorded
from mlcd.backends.recording import Point, Recording, load_recording
from mlcd.backends.simulated import Simulated

__all__ = ["Point", "Recorded", "Recording", "Simulated", "load_recording"]
