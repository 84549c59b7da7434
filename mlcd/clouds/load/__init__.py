"""The load generator: when requests are sent, how, and their results."""

from mlcd.clouds.load.generate import Closed, Open, Report, RequestFailed, Target, generate
from mlcd.clouds.load.http import Answer, Http, Request

__all__ = ["Answer", "Closed", "Http", "Open", "Report", "Request", "RequestFailed", "Target", "generate"]
