"""Notifications by mail, over the operator's mail server."""

from __future__ import annotations

import re
import smtplib
import ssl
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from mlcd.core.errors import UserError
from mlcd.core.home import private_text
from mlcd.service.notifications.events import Notification
from mlcd.service.notifications.webhook import LOOPBACK

if TYPE_CHECKING:
    from mlcd.service.notifications.receivers import Receiver

ANSWER_S = 10.0
LONGEST_ADDRESS, LONGEST_SUBJECT, LONGEST_LINE, LONGEST_RUN = 254, 150, 2_000, 60
PORTS = {"starttls": 587, "tls": 465, "none": 25}
Tls = Literal["starttls", "tls", "none"]
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"(?:{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*)\Z")
_KEYS = {"server", "tls", "user", "password", "from", "domains"}


@dataclass(frozen=True)
class MailServer:
    """The operator's mail server. `domains`: mail is sent only to these; empty: to any."""

    host: str
    port: int
    tls: Tls
    sender: str
    user: str = ""
    password: str = ""
    domains: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Without the password."""
        return f"MailServer({self.host}:{self.port})"

    def check(self, address: str) -> None:
        """`UserError` unless mail may go there."""
        domain = address.rpartition("@")[2].lower()
        if self.domains and domain not in self.domains:
            raise UserError(f"address: this service sends mail only to {' and '.join(self.domains)}")


class Mail:
    """Sends notifications by SMTP. `server`: None if the operator has configured none."""

    def __init__(self, server: MailServer | None) -> None:
        self._server = server

    def send(self, receiver: Receiver, news: Notification) -> str:
        """Send a notification; return why it could not be sent, or ''."""
        if self._server is None:
            return "this service has no mail server any more"
        where = f"mail server {self._server.host}"
        try:
            self._server.check(receiver.address)
            with _connected(self._server) as connection:
                connection.send_message(message_of(news, receiver.address, self._server.sender))
        except smtplib.SMTPRecipientsRefused as refused:
            code, words = next(iter(refused.recipients.values()))
            return f"{receiver.address} was refused: {code} {_text(words)}"
        except smtplib.SMTPResponseException as error:
            return f"{where} answered {error.smtp_code} {_text(error.smtp_error)}"
        except (smtplib.SMTPException, OSError, UserError) as error:
            has_message = isinstance(error, smtplib.SMTPException | ssl.SSLError | UserError)
            return f"{where} cannot be used ({_text(str(error)) if has_message else type(error).__name__})"
        return ""


@contextmanager
def _connected(server: MailServer) -> Iterator[smtplib.SMTP]:
    """A connection. With STARTTLS, nothing is sent before encryption; a server that does not offer it is an error."""
    context = ssl.create_default_context()
    settings: dict[str, Any] = {"timeout": ANSWER_S, "local_hostname": server.sender.rpartition("@")[2]}
    if server.tls == "tls":
        settings["context"] = context
    kind = smtplib.SMTP_SSL if server.tls == "tls" else smtplib.SMTP
    with kind(server.host, server.port, **settings) as connection:
        if server.tls == "starttls":
            connection.starttls(context=context)
        if server.user:
            _log_in(connection, server)
        yield connection


def _log_in(connection: smtplib.SMTP, server: MailServer) -> None:
    try:
        connection.login(server.user, server.password)
    except (smtplib.SMTPAuthenticationError, smtplib.SMTPServerDisconnected):  # some hang up
        raise smtplib.SMTPException("it refused the user or the password") from None


def message_of(news: Notification, to: str, sender: str) -> EmailMessage:
    """The mail. Its Message-ID is the same at each retry, so that mail programs recognize duplicates."""
    message = EmailMessage(policy=SMTP)
    domain = sender.rpartition("@")[2]
    message["Subject"] = f"[MLCD] {_line(news.title, LONGEST_SUBJECT)}"
    message["From"] = Address("MLCD", addr_spec=sender)
    message["To"] = Address(addr_spec=to)
    message["Date"] = news.at
    run = re.sub("[^A-Za-z0-9]+", "-", news.run)[:LONGEST_RUN]
    message["Message-ID"] = f"<mlcd.{run}.{news.id}@{domain}>"
    message["Auto-Submitted"] = "auto-generated"  # prevents out-of-office replies
    team = f", team {news.team}" if news.team is not None else ""
    rows = {
        "Run": news.run,
        "Of": f"{news.owner}{team}" if news.owner is not None else team.removeprefix(", "),
        "What": news.event.replace("_", " "),
        "Money": news.money,
    }
    lines = [f"{name + ':':7}{_line(value, LONGEST_SUBJECT)}" for name, value in rows.items() if value]
    message.set_content(
        "\n".join([*lines, "", _line(news.words, LONGEST_LINE), *(["", news.link] if news.link else [])])
    )
    return message


def read_mail_server(file: Path) -> MailServer:
    """Read the operator's mail settings. Only the service's user may be able to read the file: it has a password."""
    try:
        settings = tomllib.loads(private_text(file))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file}: not TOML: {error}") from None
    if unknown := sorted(settings.keys() - _KEYS):
        raise UserError(f"{file}: unknown '{unknown[0]}'; known: {', '.join(sorted(_KEYS))}")
    tls = _tls(file, _text_setting(file, settings, "tls", "starttls"))
    host, _, port = _text_setting(file, settings, "server").partition(":")
    port = port or str(PORTS[tls])
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise UserError(f"{file}: server: write it as mail.example.org or mail.example.org:587")
    if tls == "none" and host not in LOOPBACK:
        raise UserError(f"{file}: tls = 'none' is only for a mail server on this machine: mail would be unencrypted")
    sender, domains = _text_setting(file, settings, "from"), settings.get("domains", [])
    check_address(sender, f"{file}: from")
    if not isinstance(domains, list) or not all(isinstance(each, str) for each in domains):
        raise UserError(f'{file}: domains: a list, such as ["example.org"]')
    user, password = _text_setting(file, settings, "user", ""), _text_setting(file, settings, "password", "")
    return MailServer(host, int(port), tls, sender, user, password, tuple(each.lower() for each in domains))


def check_address(address: str, what: str = "address") -> None:
    """`UserError` unless it is a plain ASCII mail address without quotes and comments."""
    if len(address) > LONGEST_ADDRESS or _ADDRESS.match(address) is None:
        raise UserError(f"{what}: write a mail address such as ada@example.org, in ASCII letters")


def _tls(file: Path, word: str) -> Tls:
    for each in get_args(Tls):
        if each == word:
            return cast(Tls, each)
    raise UserError(f"{file}: tls = '{word}': expected starttls, tls or none")


def _text_setting(file: Path, settings: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = settings.get(key, default)
    if not isinstance(value, str):
        raise UserError(f"{file}: '{key}' is missing or not a text")
    return value


def _line(text: str, most: int) -> str:
    """One printable line, cut to the longest length: some of it comes from jobs."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _text(words: bytes | str) -> str:
    return _line(words.decode(errors="replace") if isinstance(words, bytes) else words, LONGEST_SUBJECT)
