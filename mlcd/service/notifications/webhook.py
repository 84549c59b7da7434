"""Notifications to a webhook: signed JSON, or a text message in Slack's format."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from mlcd.core.errors import UserError
from mlcd.service.notifications.events import Notification

if TYPE_CHECKING:
    from mlcd.service.notifications.receivers import Receiver

ANSWER_S = 5.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class WebhookSender:
    """Sends notifications by POST. `now`: the clock, for signatures; `answer_s`: the timeout of a request."""

    def __init__(self, now: Callable[[], datetime], answer_s: float = ANSWER_S) -> None:
        self._now, self._answer_s = now, answer_s

    def send(self, receiver: Receiver, news: Notification) -> str:
        """Send a notification; return why it did not arrive, or ''."""
        try:
            status = asyncio.run(self._post(receiver, news))
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, TimeoutError) as error:
            return f"{receiver.shown} cannot be reached ({type(error).__name__})"
        return "" if 200 <= status < 300 else f"{receiver.shown} answered {status}"

    async def _post(self, receiver: Receiver, news: Notification) -> int:
        """The status of the response. Its body is not read: it could be endless."""
        body, at = body_of(news, receiver.kind), str(int(self._now().timestamp()))
        headers = {
            "Content-Type": "application/json",
            "X-MLCD-Event": news.id,
            "X-MLCD-Timestamp": at,
            "X-MLCD-Signature": f"sha256={signature(receiver.secret, at, body)}",
        }
        async with (
            asyncio.timeout(self._answer_s),  # for the whole request: a trickle of bytes would otherwise never end
            httpx.AsyncClient(timeout=None, follow_redirects=False) as client,
            client.stream("POST", receiver.address, content=body, headers=headers) as answer,
        ):
            return answer.status_code


def body_of(news: Notification, kind: str) -> bytes:
    """The body of the request: JSON, or for Slack only a text."""
    if kind == "slack":
        link = f"\n<{news.link}|{_without_markup(news.run)}>" if news.link else ""
        return json.dumps({"text": _without_markup(news.text) + link}).encode()
    about = {"id": news.id, "run": news.run, "event": news.event, "words": news.words, "money": news.money}
    more = {"at": news.at.astimezone(UTC).isoformat(), "owner": news.owner, "team": news.team, "link": news.link}
    return json.dumps({**about, **more, "text": news.text}).encode()


def signature(secret: str, at: str, body: bytes) -> str:
    """HMAC-SHA256 of the time and the body, with which a receiver detects forged and replayed requests."""
    return hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()


def check_url(url: str) -> None:
    """`UserError` unless the URL is https, or on this machine."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if not parts.hostname or parts.username or not url.isprintable():
        raise UserError("address: write a URL such as https://hooks.example.org/path, without a user name")
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise UserError("address: use https; http is only for this machine, since notifications would be unencrypted")


def shown_url(url: str) -> str:
    """The URL without its path and query, which may contain a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}/…"


def _without_markup(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
