"""The operator's file of a provider: what is wrong with it is told in one line, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlcd.core.errors import UserError
from mlcd.service.sign_in.settings import read
from mlcd.service.team.members import Role

GOOD = """\
issuer = "https://sso.example.org/realms/lab"
client_id = "mlcd"

[groups]
mlcd-admins = "admin"
vision = {role = "runner", team = "vision", budget_usd = 50, budget_per = "month"}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "oidc.toml"


def test_a_good_file_is_read_with_its_secret(file: Path) -> None:
    secret = file.with_name("secret")
    secret.write_text("hush\n")
    secret.chmod(0o600)
    file.write_text(f'client_secret_file = "secret"\n{GOOD}')
    settings, told = read(file)
    assert (settings.shown, told, settings.names_teams) == ("sso.example.org", "hush", True)
    found = [settings.grant(groups) for groups in ({"vision", "mlcd-admins"}, {"vision"}, {"x"})]
    assert [each.role if each is not None else None for each in found] == [Role.ADMIN, Role.RUNNER, None]
    secret.chmod(0o640)
    with pytest.raises(UserError, match=f"chmod 600 {secret}"):
        read(file)


@pytest.mark.parametrize(
    "change, line",
    [
        (("client_id", "client-id"), "client_id: Field required"),
        (('client_id = "mlcd"', 'client_id = "mlcd"\ncolour = "red"'), "colour: Extra inputs are not permitted"),
        (("https://sso", "http://sso"), "issuer: 'http://sso.example.org/realms/lab' is not an https URL"),
        (("https://sso", "https://user:x@sso"), "is not an https URL"),
        (('"admin"', '"king"'), "groups.mlcd-admins.role: Input should be 'viewer', 'runner' or 'admin'"),
        (('team = "vision"', 'team = "My Team"'), "groups.vision.team: team 'My Team': a name has up to 60 small"),
        (("50", "-50"), "groups.vision.budget_usd: Input should be greater than or equal to 0"),
        (("50", "nan"), "groups.vision.budget_usd: Input should be a finite number"),
        (("[groups]", "[groups"), "not TOML: "),
        ((GOOD[GOOD.index("[groups]") :], ""), "nobody could sign in: add [groups] or a default role"),
    ],
)
def test_a_mistake_is_told_with_its_place(change: tuple[str, str], line: str, file: Path) -> None:
    file.write_text(GOOD.replace(*change))
    with pytest.raises(UserError) as told:
        read(file)
    assert str(told.value).startswith(f"{file}: ")
    assert line in str(told.value)
    assert "\n" not in str(told.value)


def test_a_file_that_is_not_there_is_told(file: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read(file)
