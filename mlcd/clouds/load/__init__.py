"""The load generator: when requests are sent, how, and their results."""

from mlcd.clouds.load.arrivals import Closed, Open
from mlcd.clouds.load.generate import Report, generate
from mlcd.clouds.load.http import Answer, Http, Request
from mlcd.clouds.load.target import RequestFailed, Target

__all__ = ["Answer", "Closed", "Http", "Open", "Report", "Request", "RequestFailed", "Target", "generate"]
