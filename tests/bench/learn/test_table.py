"""A table that is measured into: it can be stopped at any byte, and goes on."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from mlcd_bench.learn.table import Table, Tables, key

rows = st.fixed_dictionaries({"model": st.sampled_from(["a", "b,c"]), "batch": st.integers(1, 64)})


@given(st.lists(st.lists(rows, max_size=3), max_size=4))
def test_all_appended_rows_are_read_again(groups):
    with TemporaryDirectory() as folder:
        table = Table(Path(folder) / "t.csv", ("model", "batch"))
        for group in groups:
            table.append(group)
        wanted = [{"model": row["model"], "batch": str(row["batch"])} for group in groups for row in group]
        assert table.rows() == wanted
        assert table.keys("model", "batch") == {key(row["model"], row["batch"]) for row in wanted}


@given(st.lists(rows, min_size=1, max_size=4), st.data())
def test_a_truncated_table_keeps_its_complete_rows_and_continues(first, data):
    with TemporaryDirectory() as folder:
        table = Table(Path(folder) / "t.csv", ("model", "batch"))
        table.append(first)
        whole = table.path.read_bytes()
        cut = data.draw(st.integers(0, len(whole)))
        table.path.write_bytes(whole[:cut])
        kept = table.rows()
        assert kept == [{"model": row["model"], "batch": str(row["batch"])} for row in first][: len(kept)]
        assert len(kept) >= whole[:cut].count(b"\n") - 1
        table.append([{"model": "new", "batch": 1}])
        assert table.rows() == [*kept, {"model": "new", "batch": "1"}]


def test_the_points_of_a_knowledge_folder_have_its_knobs(tmp_path: Path):
    columns = Tables(tmp_path, ("precision", "threads", "batch")).points.columns
    assert columns[5:8] == ("precision", "threads", "batch")
    assert not (tmp_path / "points.csv").exists()
