"""Notifications by mail over real SMTP servers on loopback: plain, STARTTLS, TLS, unreachable, refusing, odd texts."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiosmtpd", reason="pip install aiosmtpd")
pytest.importorskip("trustme", reason="pip install trustme")

import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from posting import PUBLIC, searched
from stage import API, staged

from mlcd.core.errors import UserError
from mlcd.service.notifications.events import Notification
from mlcd.service.notifications.mail import LONGEST_LINE, Mail, MailServer, check_address, message_of, read_mail_server

pytestmark = pytest.mark.live
SENDER = "mlcd@service.example"


@dataclass
class Inbox:
    """What a mail server takes. `refused`: addresses that it does not."""

    port: int
    mails: list[EmailMessage] = field(default_factory=list)
    to: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    encrypted: list[bool] = field(default_factory=list)

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if address in self.refused:
            return "550 no such user here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.mails.append(message_from_bytes(envelope.content, policy=default))
        self.to += envelope.rcpt_tos
        self.encrypted.append(session.ssl is not None)
        return "250 OK"

    @property
    def server(self) -> MailServer:
        return MailServer("localhost", self.port, "none", SENDER)


@contextmanager
def receiving(inbox: Inbox, **options: Any) -> Iterator[None]:
    controller = Controller(inbox, hostname="127.0.0.1", port=inbox.port, **options)
    controller.start()
    try:
        yield
    finally:
        controller.stop()


@pytest.fixture
def inbox() -> Inbox:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return Inbox(free.getsockname()[1])


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One that this process trusts, as an operator says with SSL_CERT_FILE."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return made


def context_of(authority: Any) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return context


def test_a_mail_says_the_run_what_happened_the_money_and_where_its_page_is(post, inbox):
    post.mail = inbox.server
    post.add("mail", "ron@example.org", "ron", events=("waiting",))
    with receiving(inbox):
        searched(post.stage, "rita")
        run = searched(post.stage)
        post.deliver()
        post.deliver(after_s=60)
    (mail,) = inbox.mails
    assert inbox.to == ["ron@example.org"]
    assert (mail["From"], mail["To"]) == (f"MLCD <{SENDER}>", "ron@example.org")
    assert mail["Subject"] == f"[MLCD] {run} of ron: waiting"
    lines = mail.get_content().splitlines()
    assert lines[:3] == [f"Run:   {run}", "Of:    ron", "What:  waiting"]
    assert lines[3].startswith("Money: $")
    assert lines[3].endswith(" of $5.00 spent")
    assert "was chosen; its launch waits for a yes" in lines[5]
    assert lines[-1] == f"{PUBLIC}/runs/{run}"


def test_a_server_that_was_away_gets_everything_in_order_and_a_repeat_is_recognised(post, inbox):
    post.mail = inbox.server
    post.add("mail", "ops@example.org", events=("waiting",))
    runs = [searched(post.stage) for _ in range(2)]
    post.deliver()
    (told,) = post.all()
    assert told.trouble == "mail server localhost cannot be used (ConnectionRefusedError)"
    assert told.tries == 1
    with receiving(inbox):
        post.deliver(after_s=4)
        assert inbox.mails == []
        post.deliver(after_s=1)
        assert [mail["Subject"].split()[1] for mail in inbox.mails] == runs
        (told,) = post.all()
        assert (told.trouble, told.tries) == ("", 0)
        post.receivers.arrived(told, 0)  # as if the answer had been lost
        post.deliver()
    ids = [mail["Message-ID"] for mail in inbox.mails]
    assert len(ids) == 4
    assert ids[:2] == ids[2:]
    assert len(set(ids)) == 2


def test_a_refused_recipient_is_told_and_holds_up_no_other(post, inbox):
    post.mail = inbox.server
    inbox.refused.add("gone@example.org")
    post.add("mail", "gone@example.org")
    post.add("mail", "here@example.org")
    with receiving(inbox):
        searched(post.stage)
        post.deliver()
    gone, here = post.all()
    assert gone.trouble == "gone@example.org was refused: 550 no such user here"
    assert (here.trouble, set(inbox.to)) == ("", {"here@example.org"})


@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_mail_goes_encrypted_and_with_the_operators_password(tls, post, inbox, authority):
    seen: list[tuple[bytes, bytes]] = []

    def authenticator(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        seen.append((data.login, data.password))
        return AuthResult(success=data.password == b"right")

    context = context_of(authority)
    options: dict[str, Any] = {"tls_context": context, "require_starttls": True, "auth_required": True}
    if tls == "tls":  # of which the library's check of encryption knows nothing
        options = {"ssl_context": context, "auth_require_tls": False}
    options["authenticator"] = authenticator
    server = replace(inbox.server, tls=tls, user="mlcd", password="right")
    post.add("mail", "ops@example.org")
    (receiver,) = post.all()
    news = Notification(1, "resnet-1", "failed", post.time, "it ended")
    with receiving(inbox, **options):
        assert Mail(server).send(receiver, news) == ""
        assert "refused the user or the password" in Mail(replace(server, password="wrong")).send(receiver, news)
    assert seen[0] == (b"mlcd", b"right")
    assert len(inbox.mails) == 1


def test_nothing_is_said_to_a_server_without_starttls_or_of_another_name(post, inbox, authority):
    post.add("mail", "ops@example.org")
    (receiver,) = post.all()
    news = Notification(1, "resnet-1", "failed", post.time, "it ended")
    server = replace(inbox.server, tls="starttls")
    with receiving(inbox):
        assert "STARTTLS extension not supported" in Mail(server).send(receiver, news)
    with receiving(inbox, tls_context=context_of(authority)):
        assert "CERTIFICATE_VERIFY_FAILED" in Mail(replace(server, host="127.0.0.1")).send(receiver, news)
    assert inbox.mails == []


def test_no_text_of_a_job_makes_a_header_or_a_giant(post, inbox):
    post.mail = inbox.server
    post.add("mail", "ops@example.org")
    (receiver,) = post.all()
    odd = "x\r\nBcc: eve@example.org\r\n\r\n.\r\nQUIT\x00\udc80 ü 漢 " + "y" * 1_000_000
    with receiving(inbox):
        assert (
            Mail(inbox.server).send(receiver, Notification(7, odd, "failed", post.time, odd, odd, odd, odd, "")) == ""
        )
    (mail,) = inbox.mails
    assert inbox.to == ["ops@example.org"]
    assert mail["Bcc"] is None
    assert len(mail["Subject"]) < 200
    assert len(mail["Message-ID"]) < 120
    assert len(mail.get_content()) < LONGEST_LINE + 1_000
    assert "ü 漢" in mail.get_content()


@pytest.mark.parametrize("address", ["o'brien+x@example.org", "a@localhost", "x.y_z=1@sub.example.org"])
def test_plain_addresses_are_taken(address, post):
    check_address(address)
    assert message_of(Notification(1, "r-1", "failed", post.time, "it ended"), address, SENDER)["To"] == address


@pytest.mark.parametrize(
    "address",
    [
        *(
            "",
            "ada",
            "@x",
            "a@",
            "a b@x.org",
            "a@x.org\r\nBcc: eve@x.org",
            "a@x.org,b@x.org",
            '"a b"@x.org',
            "<a@x.org>",
        ),
        *("ada@exämple.org", "a@-x.org", "a..b@x.org", "a@x..org", f"{'a' * 300}@x.org", "a@x.org>", "a\x00@x.org"),
    ],
)
def test_odd_addresses_are_refused_in_one_line(address, post):
    with pytest.raises(UserError, match="address: write a mail address"):
        post.add("mail", address)


def test_a_member_has_their_own_mail_and_only_their_own(tmp_path, inbox):
    server = replace(inbox.server, domains=("example.org",))
    with staged(tmp_path / "home", news_every_s=1e6, mail=server) as stage, receiving(inbox):
        body = {"address": "ron@example.org", "events": ["waiting", "failed"]}
        made = stage.ask("POST", f"{API}/news", "ron", body)
        assert (made.status, made.json()["secret"]) == (201, "")
        number = made.json()["number"]
        (shown,) = stage.ask("GET", f"{API}/news", "ron").json()["receivers"]
        assert (shown["shown"], shown["member"], shown["owner"]) == ("ron@example.org", "ron", "ron")
        assert shown["events"] == ["waiting", "failed"]
        assert stage.ask("GET", f"{API}/news", "ada").json()["receivers"] == []
        for who in ("rita", "ada"):
            assert stage.ask("DELETE", f"{API}/news/{number}", who).status == 404
        assert stage.ask("POST", f"{API}/news/{number}/test", "ron", {}).json() == {"trouble": ""}
        assert inbox.mails[0]["Subject"] == "[MLCD] mlcd: test"
        refused = stage.ask("POST", f"{API}/news", "ron", {"address": "eve@elsewhere.example"})
        assert (refused.status, refused.error) == (422, "address: this service sends mail only to example.org")
        assert stage.ask("POST", f"{API}/news", "ron", {**body, "member": "rita"}).status == 422
        assert stage.ask("DELETE", f"{API}/news/{number}", "ron").status == 204


def test_a_service_without_a_mail_server_says_so(post):
    told = post.stage.ask("POST", f"{API}/news", "ron", {"address": "ron@example.org"})
    assert told.status == 409
    assert told.error == "this service sends no mail; its operator can set a mail server: mlcd service --mail-file"
    assert post.stage.ask("GET", f"{API}/news", "ron").json()["mails"] is False


def mail_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "mail.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file


def test_the_operators_file_is_read(tmp_path):
    text = 'server = "mail.example.org"\nuser = "mlcd"\npassword = "secret"\nfrom = "mlcd@example.org"\n'
    found = read_mail_server(mail_file(tmp_path, text + 'domains = ["Example.org"]\n'))
    assert found == MailServer(
        "mail.example.org", 587, "starttls", "mlcd@example.org", "mlcd", "secret", ("example.org",)
    )
    assert "secret" not in repr(found)
    assert read_mail_server(mail_file(tmp_path, text + 'tls = "tls"\n')).port == 465
    with pytest.raises(UserError, match="other users can read it"):
        read_mail_server(mail_file(tmp_path, text, 0o644))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("server = ", "not TOML"),
        ('from = "a@b"', "'server' is missing"),
        ('server = "x:y"\nfrom = "a@b"', "server: write it as"),
        ('server = "x:0"\nfrom = "a@b"', "server: write it as"),
        ('server = "x"\nfrom = "nobody"', "from: write a mail address"),
        ('server = "x"\nfrom = "a@b"\ntls = "none"', "on this machine"),
        ('server = "x"\nfrom = "a@b"\ntls = "ssl"', "expected starttls, tls or none"),
        ('server = "x"\nfrom = "a@b"\npasword = "p"', "unknown 'pasword'"),
        ('server = "x"\nfrom = "a@b"\npassword = 1', "'password' is missing or not a text"),
        ('server = "x"\nfrom = "a@b"\ndomains = "b"', "domains: a list"),
    ],
)
def test_a_mistake_in_it_is_told_in_one_line(text, why, tmp_path):
    with pytest.raises(UserError, match=why):
        read_mail_server(mail_file(tmp_path, text))
