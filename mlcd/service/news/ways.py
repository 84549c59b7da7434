"""The ways of sending news."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol

from mlcd.service.news.events import News
from mlcd.service.news.mail import Mail, MailServer
from mlcd.service.news.receivers import Kind, Receiver
from mlcd.service.news.webhook import Webhook


class Way(Protocol):
    """A way of sending."""

    def send(self, receiver: Receiver, news: News) -> str:
        """Send it, within some seconds; why it did not arrive, or ''."""
        ...


def ways_of(now: Callable[[], datetime], mail: MailServer | None) -> Mapping[Kind, Way]:
    """How each kind of receiver is reached. `now`: the clock; `mail`: the operator's mail server."""
    webhook = Webhook(now)
    return {"mail": Mail(mail), "json": webhook, "slack": webhook}
