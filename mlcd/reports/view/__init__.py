"""A run as the pages show it, from the ledger's lines alone. Plain data that JSON can say; no markup, no pixels."""

from mlcd.reports.view.lines import ledger_rows, line_words
from mlcd.reports.view.summary import Summary, kind_of, summary_of, waiting_summary
from mlcd.reports.view.view import view_of, waiting_view

__all__ = [
    "Summary",
    "kind_of",
    "ledger_rows",
    "line_words",
    "summary_of",
    "view_of",
    "waiting_summary",
    "waiting_view",
]
