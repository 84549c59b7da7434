"""The clouds that can be searched and run on."""

from mlcd.clouds.recorded import Recorded
from mlcd.clouds.recording import Point, Recording, load_recording
from mlcd.clouds.simulated import Simulated

__all__ = ["Point", "Recorded", "Recording", "Simulated", "load_recording"]
