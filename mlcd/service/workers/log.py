"""The workers' log: one line of printable text for each message, whatever a job or a cloud has put into it."""

import logging
import sys

LOG = logging.getLogger("mlcd.service.workers")


class OneLine(logging.Formatter):
    """Escapes what is not printable, so that a message cannot fake another one or control a terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """The message on one line; the stack trace of a bug follows on further lines."""
        return "".join(each if each.isprintable() else repr(each)[1:-1] for each in super().formatMessage(record))


def to_stderr(force: bool = False) -> None:
    """Log warnings to stderr, unless logging is already configured; `force`: even then."""
    if force or not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(OneLine("mlcd: %(message)s"))
        logging.basicConfig(level=logging.WARNING, handlers=[handler], force=force)
