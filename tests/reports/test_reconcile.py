"""The ledger held against the cloud's bill."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.errors import UserError
from mlcd.reports.reconcile import Reconciled, read_aws_export

EXPORTS = {
    "data export": "line_item_unblended_cost,resource_tags_user_mlcd\n0.5,a\n0.25,a\n1.0,\n2.0,b\n",
    "cost and usage report": "lineItem/UnblendedCost,resourceTags/user:mlcd\n0.75,a\n2.0,b\n",
    "all tags in a column": (
        'line_item_unblended_cost,resource_tags\n0.75,"{""user_mlcd"": ""a""}"\n9,{}\n2.0,"{""user_mlcd"": ""b""}"\n'
    ),
}


@pytest.mark.parametrize("text", EXPORTS.values(), ids=EXPORTS)
def test_an_export_of_aws_is_summed_up_by_launch(tmp_path: Path, text: str) -> None:
    (tmp_path / "bill.csv").write_text(text)
    assert read_aws_export(tmp_path / "bill.csv") == {"a": 0.75, "b": 2.0}


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "line_item_unblended_cost,resource_tags_user_mlcd\nx,a\n", "\x00"])
def test_another_file_is_told_in_a_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "bill.csv").write_text(text)
    with pytest.raises(UserError, match=r"bill.csv: (not an export|cannot be read)"):
        read_aws_export(tmp_path / "bill.csv")


@pytest.mark.parametrize(
    ("ledger_usd", "cloud_usd", "words"),
    [
        (1.01, 1.0, ""),
        (1.1, 1.0, "the ledger has $0.10 more (10.0 %)"),
        (0.9, 1.0, "the ledger has $0.10 less (10.0 %)"),
        (102.0, 100.5, "the ledger has $1.50 more (1.5 %)"),
        (0.5, None, "not in the bill"),
        (0.0, None, ""),
        (0.5, 0.0, "the ledger has $0.50 more"),
    ],
)
def test_a_difference_beyond_two_percent_or_a_dollar_is_pointed_out(
    ledger_usd: float, cloud_usd: float | None, words: str
) -> None:
    row = Reconciled("a-1", "1 x a", ledger_usd, cloud_usd)
    assert row.words == words
    assert row.differs == bool(words)


@given(st.floats(0, 1e6), st.none() | st.floats(0, 1e6))
def test_any_two_amounts_can_be_told(ledger_usd: float, cloud_usd: float | None) -> None:
    row = Reconciled("a-1", "1 x a", ledger_usd, cloud_usd)
    assert bool(row.words) == row.differs
