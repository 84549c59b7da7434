"""How notifications are sent to each kind of receiver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol

from mlcd.service.notifications.events import Notification
from mlcd.service.notifications.mail import Mail, MailServer
from mlcd.service.notifications.receivers import Kind, Receiver
from mlcd.service.notifications.webhook import WebhookSender


class Sender(Protocol):
    """Sends notifications to receivers of one kind."""

    def send(self, receiver: Receiver, news: Notification) -> str:
        """Send a notification within some seconds; return why it did not arrive, or ''."""
        ...


def senders_by_kind(now: Callable[[], datetime], mail: MailServer | None) -> Mapping[Kind, Sender]:
    """The sender for each kind of receiver. `now`: the clock; `mail`: the operator's mail server."""
    webhook = WebhookSender(now)
    return {"mail": Mail(mail), "json": webhook, "slack": webhook}
