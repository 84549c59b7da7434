"""python bootstrap.py REQUESTS ANSWERS: the program in an environment; it loads the code and calls the handler.

It uses only the standard library, because it runs with the functions' Python. Both arguments are file descriptors. It
reads a line of JSON for each call, and writes one when the code is loaded and for each answer.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any


class Context:
    """The context object that Lambda passes to a handler."""

    def __init__(self, call: dict[str, Any]) -> None:
        self.aws_request_id: str = call["id"]
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = "$LATEST"
        self.invoked_function_arn: str = call["arn"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.log_group_name = f"/aws/lambda/{self.function_name}"
        self.log_stream_name = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]
        self.identity = self.client_context = None
        self._until_s: float = call["until_s"]

    def get_remaining_time_in_millis(self) -> int:
        """The time until the call is ended."""
        return max(0, int(1_000 * (self._until_s - time.time())))


def main() -> None:
    """Load the handler, then answer calls until the pipe of requests is closed."""
    with os.fdopen(int(sys.argv[1]), encoding="utf-8") as requests, os.fdopen(int(sys.argv[2]), "w") as answers:
        handler, error = load(os.environ["_HANDLER"])
        send(answers, {"error": error})
        if handler is None:
            return
        for line in requests:
            call = json.loads(line)
            try:
                send(answers, {"result": json.dumps(handler(json.loads(call["event"]), Context(call))), "error": None})
            except Exception as raised:  # any error of the handler is the answer
                send(answers, {"result": None, "error": described(raised)})


def load(name: str) -> tuple[Callable[..., Any] | None, dict[str, Any] | None]:
    """Load the handler, `module.function`; return it, or the error that loading it raised."""
    module, _, function = name.rpartition(".")
    try:
        return getattr(import_module(module.replace("/", ".")), function), None
    except Exception as raised:
        return None, described(raised)


def described(raised: Exception) -> dict[str, Any]:
    """An error as Lambda returns it."""
    traceback.print_exception(raised)
    frames = traceback.format_tb(raised.__traceback__)
    return {"errorMessage": str(raised), "errorType": type(raised).__name__, "stackTrace": frames}


def send(answers: Any, answer: dict[str, Any]) -> None:
    """Write an answer, in one line."""
    sys.stdout.flush()
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
