"""The report page: self-contained, well-formed, honest about where its numbers come from, and adding up."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from mlcd.clouds import Point, Recorded, Recording
from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.decision import Decision
from mlcd.core.drive import launch, search
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger import (
    Decided,
    Ended,
    Ledger,
    Line,
    Refused,
    Reserved,
    Resumed,
    Settled,
    Started,
    Status,
    Stopped,
    Voided,
)
from mlcd.core.ledger.account import Account
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.units import enough_usd, format_usd
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.completion import RunToCompletion
from mlcd.reports.figures.axes import Scale, shortened
from mlcd.reports.figures.frontier import boundary
from mlcd.reports.html import page
from mlcd.reports.story import Story
from mlcd_bench.baselines.train.heterbo import HeterBO

SMALL = Offer("small", 0.5, 4, 16, accelerator="T4", accelerators=1, tflops_per_accelerator=8)
LARGE = Offer("large", 4.0, 32, 128, accelerator="A100", accelerators=2, tflops_per_accelerator=19)
TINY = Offer("tiny", 0.1, 1, 1)
VOID = {"meta", "link", "br", "hr", "img", "input"}


def recording() -> Recording:
    points = {Configuration(TINY, n): Point(Outcome.OUT_OF_MEMORY) for n in (1, 2)}
    points |= {Configuration(SMALL, n): Point(Outcome.OK, 40.0 * n**0.8) for n in (1, 2, 4, 8)}
    points |= {Configuration(LARGE, n): Point(Outcome.OK, 300.0 * n**0.9) for n in (1, 2, 4)}
    return Recording("toy", 5e6, points)


def lines(
    goal: Goal | None = None,
    *,
    name: str = "toy",
    run: bool = True,
    provenance: Provenance = Provenance.RECORDED,
) -> list[Line]:
    """A whole run on the toy recording."""
    toy, clock = recording(), VirtualClock()
    job = Job(name, toy.work_samples, goal or Goal(Objective.FASTEST, budget_usd=40.0))
    ledger = Ledger(None)
    book = ledger.begin(name, clock, Started(job, toy.space, "recorded:toy", provenance, "0.1.0"))
    profiler = TrainingProfiler(Recorded(toy, clock, 0.02, 0), 0.02, None, False)
    decision = search(HeterBO(), job, toy.space, profiler, book)
    if decision.configuration is not None and run:
        launch(RunToCompletion(decision.configuration), job, toy.space, profiler, book)
    written = ledger.lines(book.run)
    ledger.close()
    return written


def status(written: list[Line]) -> Status:
    return Account.replay((line.entry, line.elapsed_s) for line in written).status


def then(written: list[Line], *entries: object) -> list[Line]:
    """The lines with further entries behind them."""
    return [*written, *(replace(written[-1], seq=written[-1].seq + i, entry=e) for i, e in enumerate(entries, 1))]


def up_to(written: list[Line], kind: type, nth: int = 1) -> list[Line]:
    at = [i for i, line in enumerate(written) if isinstance(line.entry, kind)]
    return written[: at[nth - 1] + 1]


def runs_job() -> list[Line]:
    written = lines()
    start = next(
        i
        for i, line in enumerate(written)
        if isinstance(line.entry, Reserved) and line.entry.launch.purpose is Purpose.RUN
    )
    return written[: start + 1]


def failed_job() -> list[Line]:
    written = runs_job()
    order = written[-1].entry
    assert isinstance(order, Reserved)
    lost = Measurement(order.launch.configuration, Outcome.FAILED, 60.0, 1.0, detail="exit 1 </td>")
    return then(written, Settled(order.launch, lost), Ended(False, "the job ended: failed, exit 1 </td>"))


def crashed() -> list[Line]:
    """Killed, voided, refused, resumed: everything that can stand in a ledger."""
    written = up_to(lines(), Settled, 3)
    c = Configuration(LARGE, 4)
    order = Launch("toy-1-9", c, Purpose.PROBE, 5e6, 600.0, 9)
    return then(
        written,
        Reserved(order, "to see", 4.0, 600.0),
        Resumed("a launch was open when the last process ended"),
        Voided(order, "the process died"),
        Refused(c, "it would use what is reserved to finish"),
        Reserved(order, "once more", 4.0, 600.0),
    )


@dataclass(frozen=True)
class Case:
    make: Callable[[], list[Line]]
    status: Status


CASES = {
    "nothing yet": Case(lambda: lines()[:1], Status.SEARCHING),
    "one failed probe": Case(lambda: up_to(lines(), Settled), Status.SEARCHING),
    "searching": Case(lambda: up_to(lines(), Settled, 4), Status.SEARCHING),
    "crashed and resumed": Case(crashed, Status.SEARCHING),
    "stopped": Case(lambda: then(up_to(lines(), Settled, 4), Stopped("interrupted by the user")), Status.STOPPED),
    "stopped in the run": Case(lambda: then(lines(run=False), Stopped("interrupted by the user")), Status.STOPPED),
    "decided": Case(lambda: lines(run=False), Status.DECIDED),
    "running": Case(runs_job, Status.RUNNING),
    "finished": Case(lines, Status.FINISHED),
    "failed": Case(failed_job, Status.FAILED),
    "infeasible": Case(lambda: lines(Goal(Objective.FASTEST, budget_usd=5.0)), Status.INFEASIBLE),
    "infeasible in time": Case(lambda: lines(Goal(Objective.FASTEST, 5.0, 7_200.0)), Status.INFEASIBLE),
    "no probe allowed": Case(lambda: lines(Goal(Objective.FASTEST, budget_usd=0.001)), Status.INFEASIBLE),
    "both limits": Case(lambda: lines(Goal(Objective.CHEAPEST, 60.0, 48 * 3_600.0)), Status.FINISHED),
    "no limit": Case(lambda: lines(Goal(Objective.CHEAPEST)), Status.FINISHED),
    "decided by hand": Case(
        lambda: then(lines()[:1], Decided(Decision(Configuration(LARGE, 1), "as told"))), Status.DECIDED
    ),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


class Balance(HTMLParser):
    """Fails on a tag that closes another one, and collects the text that a reader sees."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.seen.append(data)


def read(document: str) -> Balance:
    parser = Balance()
    parser.feed(document)
    parser.close()
    return parser


def test_every_status_renders_a_well_formed_page(case: Case) -> None:
    written = case.make()
    assert status(written) is case.status
    document = page(written)
    parser = read(document)
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    for drawing in re.findall(r"<svg.*?</svg>", document, re.DOTALL):
        ElementTree.fromstring(drawing)
    assert f">{case.status}<" in document


def test_the_page_needs_nothing_else(case: Case) -> None:
    document = page(case.make())
    assert len(document.encode()) < 1_000_000
    assert not re.search(r"<script|<link|<img|<iframe|@import", document, re.IGNORECASE)
    assert not re.search(r"(?:src|href)\s*=|url\(\s*['\"]?\s*(?!#)", document, re.IGNORECASE)
    assert set(re.findall(r"https?://[^\"'\s<]+", document)) <= {"http://www.w3.org/2000/svg"}


def test_no_number_is_lost_on_the_way_to_a_drawing(case: Case) -> None:
    assert not re.search(r'[="(, ](?:nan|inf|-inf)\b', page(case.make()))


def test_everything_drawn_stays_inside_its_drawing(case: Case) -> None:
    for drawing in re.findall(r'<svg[^>]*class="(?:wide|narrow)".*?</svg>', page(case.make()), re.DOTALL):
        root = ElementTree.fromstring(drawing)
        _, _, width, height = (float(number) for number in root.attrib["viewBox"].split())
        for node in root.iter("{http://www.w3.org/2000/svg}text"):
            assert -1 <= float(node.attrib["x"]) <= width + 1
            assert 0 <= float(node.attrib["y"]) <= height


def test_a_hostile_name_stays_words() -> None:
    hostile = "</title></style><script>alert('x')</script>\x00\" onload=\"x&amp;" + "w" * 300
    document = page(lines(name=hostile))
    assert "<script" not in document
    assert "\x00" not in document
    assert 'onload="x' not in document
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in document
    assert read(document).open == []


def test_hostile_details_and_reasons_stay_words() -> None:
    assert "exit 1 </td>" not in page(failed_job())


@pytest.mark.parametrize("provenance", list(Provenance))
def test_the_provenance_is_shown(provenance: Provenance) -> None:
    document = page(lines(provenance=provenance))
    assert f'class="badge {provenance}"' in document
    assert str(provenance).capitalize() + ":" in document
    assert "Numbers marked simulated are not measurements." in document


def test_only_the_chosen_row_is_marked() -> None:
    written = lines()
    decision = Account.replay((line.entry, line.elapsed_s) for line in written).decision
    assert decision is not None
    rows = re.findall(r'<tr class="chosen">(.*?)</tr>', page(written))
    assert len(rows) == 1
    assert f"{decision.configuration} (chosen)" in rows[0]


def test_the_ledger_adds_up_to_what_was_settled(case: Case) -> None:
    written = case.make()
    settled = [line.entry.measurement.usd for line in written if isinstance(line.entry, Settled)]
    document = page(written)
    table = document[document.index("<details>") :]
    total = re.search(r"<tfoot>.*?\$([\d,.]+)<", table)
    assert total is not None
    assert float(total[1].replace(",", "")) == pytest.approx(sum(settled), abs=1e-4)
    rows = re.findall(r'<tr class="settled">.*?\$([\d,.]+)<', table)
    assert sum(float(row.replace(",", "")) for row in rows) == pytest.approx(sum(settled), abs=1e-4 * (len(rows) + 1))
    assert table.count("<tr") == len(written) + 2


def test_the_total_of_a_finished_run_is_the_ledgers() -> None:
    written = lines()
    story = Story.of(written)
    assert f"<dt>Total cost</dt><dd><b>{format_usd(story.settled_usd)}</b>" in page(written)


def test_the_reserve_is_a_sum_that_holds() -> None:
    story = Story.of(lines())
    best = story.best
    assert best is not None
    assert story.worst(best)[1] == pytest.approx(story.search.spent_usd + story.ahead(best).worst_usd)
    assert story.worst(best)[1] <= 40.0
    assert "≤" in page(story.lines)


def test_a_run_that_cannot_be_certified_says_what_it_needs() -> None:
    written = lines(Goal(Objective.FASTEST, budget_usd=5.0))
    decision = Story.of(written).decision
    assert decision is not None
    needed = decision.relaxations[0].budget_usd
    assert needed is not None
    words = "".join(read(page(written)).seen)
    assert "Cannot be certified: the budget ($5.00)" in words
    assert f"It needs {enough_usd(needed)}" in words


def test_every_probe_has_its_reason_in_order() -> None:
    written = lines()
    document = page(written)
    listed = document[document.index('<ol class="reasons">') : document.index("</ol>")]
    numbers = [int(number) for number in re.findall(r'<span class="no">(\d+)</span>', listed)]
    assert numbers == list(range(1, len(Story.of(written).probes) + 1))


def test_a_configuration_measured_again_counts_once() -> None:
    written = up_to(lines(), Settled, 4)
    order = next(line.entry for line in reversed(written) if isinstance(line.entry, Reserved))
    settled = written[-1].entry
    assert isinstance(settled, Settled)
    again = then(written, order, settled)
    assert len(Story.of(again).good) == len(Story.of(written).good)
    assert "measured again" in page(again)


def test_a_report_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="from the first one on"):
        page([])


def test_the_boundary_holds_what_nothing_beats() -> None:
    assert boundary([(1, 9), (2, 5), (3, 6), (2, 7), (4, 5), (5, 1)]) == [(1, 9), (2, 5), (5, 1)]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("low", "high"), [(1, 50), (0.0001, 0.0009), (3.0, 3.3), (1, 1e9), (7, 7)])
def test_ticks_are_few_and_inside(low: float, high: float, log: bool) -> None:
    ticks = Scale(low, high, 0, 100, log).ticks(6)
    assert 1 <= len(ticks) <= 7
    assert all(low <= tick <= high for tick in ticks)


def test_a_long_name_keeps_both_ends() -> None:
    assert shortened("Standard_ND96amsr_A100_v4_reserved", 20) == "Standard_N…_reserved"
