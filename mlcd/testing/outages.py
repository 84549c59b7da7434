"""The contract of a place that rents while it cannot be used. Subclass it and say how to make yours.

class TestNoNetwork(OutageContract):
    @pytest.fixture
    def cloud(self, tmp_path): return Cloud(space, MyBackend(unreachable, tmp_path), profiler, clock)
"""

import pytest

from mlcd.core.configuration import Space
from mlcd.core.drive import search
from mlcd.core.errors import Outage
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Settled, Started, Status, Voided
from mlcd.core.outages import FAILED_LAUNCHES
from mlcd.core.place import Cloud
from mlcd.core.strategy import Finish, Probe, Step


class EveryConfiguration:
    """A search that tries everything once, in order."""

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The next one without an answer."""
        left = [each for each in space.configurations if each not in history.tried]
        return Probe(left[0], "the next one") if left else Finish("everything was tried")


class OutageContract:
    """What every place that rents keeps to while it cannot be used."""

    @pytest.fixture
    def cloud(self) -> Cloud:
        """The place, which cannot be used, with some configurations."""
        raise NotImplementedError

    def job(self) -> Job:
        """A job to run there."""
        return Job("outage", 1e6, task={"run": "python train.py"})

    def test_it_books_nothing_and_stops_the_run_after_two_launches(self, cloud: Cloud) -> None:
        job, ledger = self.job(), Ledger(None)
        first = Started(job, cloud.space, "a place that cannot be used", cloud.provenance, "test")
        book = ledger.begin(job.name, cloud.clock, first)
        with pytest.raises(Outage) as outage:
            search(EveryConfiguration(), job, cloud.space, cloud.profiler, book)
        self.check_message(str(outage.value), book.run)
        entries = [line.entry for line in ledger.lines(book.run)]
        assert not [entry for entry in entries if isinstance(entry, Settled)]
        assert 1 <= len([entry for entry in entries if isinstance(entry, Voided)]) <= FAILED_LAUNCHES
        account = ledger.account(book.run)
        assert (account.history.spent_usd, account.open, account.decision) == (0.0, (), None)
        assert account.status is Status.STOPPED  # it can be resumed, and nothing was concluded

    def check_message(self, message: str, run: str) -> None:
        """One line: what is wrong, that it cost nothing, how to go on."""
        assert "\n" not in message
        assert "nothing is billed" in message
        assert f"mlcd resume {run}" in message
