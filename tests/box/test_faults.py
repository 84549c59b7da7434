"""Injected faults, and the parsing of user data."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlcd_box.cloud.faults import NEVER_S, Faults, Rule
from mlcd_box.cloud.user_data import read_user_data

USER_DATA = """#cloud-config
users:
  - name: ubuntu
    sudo: ALL=(ALL) NOPASSWD:ALL
    ssh_authorized_keys:
      - |-
        ssh-rsa AAAA key
write_files:
  - path: /etc/apt/x
    content: |
      Off "0";
bootcmd:
  - systemctl stop it
runcmd:
  - [shutdown, -h, "+5 m"]
"""


@pytest.fixture
def faults(tmp_path: Path) -> Faults:
    return Faults(tmp_path / "faults.json")


def test_without_rules_there_are_no_faults(faults: Faults) -> None:
    assert faults.refusal("m5.large", "us-east-1a", "spot") is None
    assert faults.ssh_after_s("m5.large", "us-east-1a", "spot") == 0


def test_a_machine_is_refused_by_type_zone_and_market(faults: Faults) -> None:
    faults.write([Rule("no-capacity", "m5.*", "us-east-1a", "spot")])
    refusal = faults.refusal("m5.large", "us-east-1a", "spot")
    assert refusal is not None
    assert refusal[0] == "InsufficientInstanceCapacity"
    for other in (("c5.large", "us-east-1a", "spot"), ("m5.large", "us-east-1b", "spot")):
        assert faults.refusal(*other) is None
    assert faults.refusal("m5.large", "us-east-1a", "on-demand") is None


@pytest.mark.parametrize(
    ("market", "code"), [("spot", "MaxSpotInstanceCountExceeded"), ("on-demand", "VcpuLimitExceeded")]
)
def test_a_quota_has_the_code_of_its_market(faults: Faults, market: str, code: str) -> None:
    faults.write([Rule("quota")])
    refusal = faults.refusal("m5.large", "us-east-1a", market)
    assert refusal is not None
    assert refusal[0] == code


def test_a_slow_machine_answers_late_and_a_broken_one_never(faults: Faults) -> None:
    faults.write([Rule("slow-boot", "m5.*", seconds=90), Rule("no-ssh", "c5.*")])
    assert faults.ssh_after_s("m5.large", "us-east-1a", "spot") == 90
    assert faults.ssh_after_s("c5.large", "us-east-1a", "spot") == NEVER_S


def test_user_data_has_the_user_keys_files_and_commands() -> None:
    first = read_user_data(USER_DATA)
    assert (first.user, first.keys) == ("ubuntu", ("ssh-rsa AAAA key",))
    assert first.files == {"/etc/apt/x": 'Off "0";\n'}
    assert first.script == "systemctl stop it\nshutdown -h '+5 m'\n"


def test_without_user_data_the_user_is_ubuntu() -> None:
    assert read_user_data("").user == "ubuntu"
