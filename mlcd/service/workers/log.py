"""Logging of a service and its workers: always one line for each message, whatever text it contains.

Text for people, or JSON for programs (`MLCD_LOG_FORMAT=json`) with `time`, `level`, `logger`, `message` and details.
Anything that looks like one of our tokens is masked.
"""

import json
import logging
import os
import sys
from datetime import UTC, datetime

from mlcd.service.team.members import without_secrets

LOG = logging.getLogger("mlcd.service.workers")
FORMAT, LEVEL = "MLCD_LOG_FORMAT", "MLCD_LOG_LEVEL"
"""Environment variables: workers and the processes of runs inherit them."""


class OneLine(logging.Formatter):
    """Escapes what is not printable, so that a message cannot fake another one or control a terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """The message on one line; the stack trace of a bug follows on further lines."""
        return "".join(each if each.isprintable() else repr(each)[1:-1] for each in super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """The line, and the stack trace."""
        return without_secrets(super().format(record))


class JsonLines(logging.Formatter):
    """A JSON object on one line; its stack trace, if any, in `stack`. `extra={"about": {...}}` adds keys."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "about", {}),
        }
        if record.exc_info:
            fields["stack"] = self.formatException(record.exc_info)
        return without_secrets(json.dumps(fields, default=str))


def to_stderr(force: bool = False) -> None:
    """Log to stderr, unless logging is already configured; `force`: even then. Default: warnings, as text."""
    if force or not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        as_json = os.environ.get(FORMAT) == "json"
        handler.setFormatter(JsonLines() if as_json else OneLine("mlcd: %(message)s"))
        level = level_of(os.environ.get(LEVEL, ""))
        logging.basicConfig(level=max(level, logging.WARNING), handlers=[handler], force=force)
        logging.getLogger("mlcd").setLevel(level)  # other libraries only log warnings


def level_of(name: str) -> int:
    """The level of that name; WARNING for an unknown one, so that a typo does not stop a run."""
    return logging.getLevelNamesMapping().get(name.upper(), logging.WARNING)
