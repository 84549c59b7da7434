"""Everything that can go wrong between here and a server is one line that says what to do, and never has the token."""

from __future__ import annotations

import os
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.errors import MlcdError, UserError, WrongState
from mlcd.core.exit_codes import ExitCode
from mlcd.core.version import VERSION
from mlcd.service.remote.ledger import RemoteLedger
from mlcd.service.remote.server import Server, ServerError, ServerLost
from mlcd.service.remote.team import RemoteTeam
from mlcd.service.remote.tokens import Tokens, address, checked
from mlcd.service.web.errors import STATUS_MEANINGS

TOKEN = "mlcd_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"


def spoken(status: int, body: Any, **headers: str) -> Any:
    return SimpleNamespace(status=status, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


def complaint(url: str, do: Callable[[Server], Any]) -> MlcdError:
    """What is raised; one line without the token, wherever one looks."""
    server = Server(url, TOKEN, wait=lambda seconds: None)
    try:
        with pytest.raises(MlcdError) as refused:
            do(server)
    finally:
        server.close()
    seen: BaseException | None = refused.value
    while seen is not None:
        assert TOKEN not in f"{seen!r} {seen}"
        seen = seen.__cause__
    assert TOKEN not in repr(vars(server))
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == (ExitCode.UNAVAILABLE if refused.type is ServerLost else ExitCode.REFUSED)
    return refused.value


SAID = {
    "a wrong token": (401, {"error": "no such token"}, ServerError, "the token in MLCD_TOKEN is not valid there"),
    "a viewer": (403, {"error": "ada is a viewer"}, ServerError, "not allowed: ada is a viewer"),
    "an unknown run": (404, {"error": "unknown run 'x'"}, UserError, "unknown run 'x'"),
    "over budget": (409, {"error": "ada has $12.00 left", "left_usd": 12.0}, WrongState, "ada has $12.00 left"),
    "a bad job": (422, {"error": "job.yaml:1:1: empty"}, UserError, "job.yaml:1:1: empty"),
    "too large": (413, {"error": "at most 200 MB"}, UserError, "at most 200 MB"),
    "a database away": (503, {"error": "the database is away"}, ServerLost, "the database is away"),
    "a proxy in between": (502, b"<html>bad gateway</html>", ServerLost, "answers 502"),
    "a proxy that takes less": (
        413,
        b"<html>too large</html>",
        UserError,
        "a proxy before it refuses such a large request",
    ),
    "a bug there": (500, {"error": "something broke"}, ServerError, "answers 500: something broke"),
    "lines in an error": (422, {"error": "one\ntwo"}, UserError, "one two"),
}


@pytest.mark.parametrize(("status", "body", "kind", "words"), SAID.values(), ids=SAID.keys())
def test_what_a_server_refuses_is_told_in_its_words(
    service: Any, status: int, body: Any, kind: type[MlcdError], words: str
) -> None:
    service.instead["/runs/x/resume"] = spoken(status, body)
    error = complaint(service.url, lambda server: server.post("/runs/x/resume"))
    assert isinstance(error, kind)
    assert words in str(error)


def test_too_many_questions_wait_as_long_as_the_server_asks(service: Any) -> None:
    service.instead["/me"] = [spoken(429, {"error": "too many"}, Retry_After="7"), spoken(200, {"name": "ada"})]
    waited: list[float] = []
    server = Server(service.url, wait=waited.append)
    assert server.get("/me") == {"name": "ada"}
    assert waited == [7.0]
    server.close()
    service.instead["/me"] = spoken(429, {"error": "too many requests"}, Retry_After="999999")
    assert "too many requests" in str(complaint(service.url, lambda server: server.get("/me")))


def test_nobody_there_is_told_with_what_to_look_at() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    error = complaint(url, lambda server: server.get("/me"))
    assert isinstance(error, ServerLost)
    assert str(error) == f"{url}: cannot be reached, nobody answers; is it running, and is the address right?"


@contextmanager
def answering(said: bytes, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """A port where everybody is told this, whatever they say."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            while True:
                try:
                    one, _ = listener.accept()
                    with context.wrap_socket(one, server_side=True) if context is not None else one as client:
                        client.recv(65_536)
                        client.sendall(said)
                except ssl.SSLError:
                    continue
                except OSError:
                    return

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize(
    "said",
    [b"220 mail.example ESMTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"\x00\xff\x00"],
    ids=["mail", "a page", "bytes"],
)
def test_something_else_at_the_address_is_not_an_mlcd_server(said: bytes) -> None:
    with answering(said) as port:
        error = complaint(f"http://127.0.0.1:{port}", lambda server: server.get("/me"))
    assert "not an MLCD server" in str(error)


@pytest.mark.parametrize("status", [200, 404])
def test_a_web_site_is_not_an_mlcd_server(service: Any, status: int) -> None:
    service.instead |= {"/me": spoken(status, b"<h1>Hi"), "/health": spoken(status, b"<h1>Hi")}
    assert "not an MLCD server" in str(complaint(service.url, lambda server: server.get("/me")))


def test_a_redirect_is_told_and_never_followed(service: Any) -> None:
    moved = spoken(307, b"", Location="https://evil.example/api/v1/health")
    service.instead |= {"/me": moved, "/health": moved}
    error = complaint(service.url, lambda server: server.get("/me"))
    assert "answers from another address (https://evil.example)" in str(error)


@pytest.mark.parametrize(
    ("version", "words"),
    [("99.0", "newer than this one"), ("0.0.1", "older than this one"), (VERSION, "is there a proxy in between")],
)
def test_an_older_or_newer_server_says_which_of_the_two_to_upgrade(service: Any, version: str, words: str) -> None:
    service.version = version
    service.instead["/runs/x/entries"] = spoken(200, {"run": "x", "entries": [{"seq": 1}], "driven": False})
    assert words in str(complaint(service.url, lambda server: RemoteLedger(server).lines("x")))
    assert words in str(complaint(service.url, lambda server: server.get("/a-question-of-the-future")))
    for status in (404, 405):
        service.instead["/members/ada"] = spoken(status, {"error": STATUS_MEANINGS[status]})
        assert words in str(complaint(service.url, lambda server: server.send("PATCH", "/members/ada", {})))


ODD = ({}, [], None, {"members": [{"name": "ada"}]}, {"members": [{**dict.fromkeys(["name", "team"]), "role": "boss"}]})


@pytest.mark.parametrize("body", ODD, ids=str)
def test_an_answer_about_a_team_that_makes_no_sense_is_told_as_such(service: Any, body: Any) -> None:
    service.instead |= {path: spoken(200, body) for path in ("/members", "/teams", "/audit")}
    for do in (RemoteTeam.members, RemoteTeam.teams, lambda team: team.audit(3), lambda team: team.renew("ada")):
        assert "a proxy in between" in str(complaint(service.url, lambda server, do=do: do(RemoteTeam(server))))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that nobody vouches for."""
    x509 = pytest.importorskip("cryptography.x509", reason="pip install cryptography")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path


def test_a_certificate_that_nobody_vouches_for_is_told(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with answering(b"", context) as port:
        error = complaint(f"https://127.0.0.1:{port}", lambda server: server.get("/me"))
    assert "its certificate is not trusted" in str(error)
    assert "SSL_CERT_FILE" in str(error)


def test_https_where_there_is_only_http_is_told(service: Any) -> None:
    error = complaint(service.url.replace("http:", "https:"), lambda server: server.get("/me"))
    assert "does not speak TLS" in str(error)


def test_the_token_and_the_sign_against_other_sites_go_with_every_question(service: Any) -> None:
    server = Server(f"{service.url}/", TOKEN)
    server.get("/me")
    server.close()
    headers = service.asked[-1].headers
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert headers["x-mlcd"] == "1"


@pytest.mark.parametrize("token", ["", "two words", "mlcd_ünicode1234", "mlcd_a\r\nX-Evil: 1", "short", "x" * 300])
def test_what_is_no_token_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(UserError) as refused:
        checked(token, "MLCD_TOKEN")
    assert not token or token not in str(refused.value)
    assert str(refused.value).startswith("MLCD_TOKEN is not an MLCD token")


@given(st.text(max_size=30) | st.from_regex(r"https?://[a-z0-9.:@/\[\]?#-]{0,20}", fullmatch=True))
def test_an_address_is_one_of_http_or_is_refused(url: str) -> None:
    try:
        place = address(url)
    except UserError:
        return
    assert place.startswith(("http://", "https://"))
    assert address(place) == place
    assert not place.endswith("/")


@pytest.mark.parametrize("url", ["", "localhost:8421", "ftp://x", "http://", "http://x:99999", "http://x/?a=b"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="expected an address, such as"):
        address(url)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(UserError) as refused:
        address("https://ada:secret@mlcd.example")
    assert "secret" not in str(refused.value)


def test_tokens_are_kept_for_this_user_alone_and_for_their_own_server(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        kept = Tokens(tmp_path / "home" / "servers.json")
        kept.keep("http://a.example/", TOKEN)
    finally:
        os.umask(before)
    assert stat.S_IMODE(kept.path.stat().st_mode) == 0o600
    assert kept.get("HTTP://A.example") == TOKEN
    assert kept.get("http://b.example") is None
    assert kept.get("https://a.example") is None
    assert kept.get("http://a.example:81") is None
    assert kept.forget("http://a.example")
    assert not kept.forget("http://a.example")
    assert kept.get("http://a.example") is None


@pytest.mark.parametrize("text", ["", "[]", '{"http://a": 3}', "{"])
def test_a_damaged_file_of_tokens_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "servers.json"
    path.write_text(text)
    with pytest.raises(UserError, match="damaged; delete it"):
        Tokens(path).get("http://a.example")
