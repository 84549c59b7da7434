"""The report of a run as one HTML page that needs nothing else: no network, no script, no font.

Figures are drawn twice, for a desk and for a phone, and the style sheet shows one of them: text inside
a drawing that is merely scaled down could not be read.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files

from mlcd.core.ledger import Line
from mlcd.core.units import counted
from mlcd.planners.functions.nouns import FunctionsTask, Planned
from mlcd.planners.scale.nouns import ScalingTask, scaling_task
from mlcd.planners.serve.nouns import ServingTask, serving_task
from mlcd.planners.serve.promise import value
from mlcd.reports.answer import actual, answer, certificate, key_figures
from mlcd.reports.curve import Curve, notes
from mlcd.reports.figures import (
    Resource,
    best_so_far,
    frontier,
    key,
    kinds,
    latencies,
    latency_tradeoff,
    legend,
    listed,
    search_path,
    spend,
    tradeoff,
    type_order,
)
from mlcd.reports.figures.marks import cross, marker, ring
from mlcd.reports.functions import answer as serverless
from mlcd.reports.functions.page import Part, parts
from mlcd.reports.functions.page import command as serverless_command
from mlcd.reports.markup import element, text
from mlcd.reports.reasons import reasons
from mlcd.reports.serve import answer as serving
from mlcd.reports.serve.tables import trials
from mlcd.reports.serve.words import broken_words
from mlcd.reports.story import Story
from mlcd.reports.tables import expected, ledger, measured

WIDE, NARROW = 840, 350

_MEANING = {
    "simulated": "Simulated: these numbers come from a model of a cloud. They are not measurements.",
    "recorded": "Recorded: these numbers replay measurements made earlier; nothing was rented for this run.",
    "live": "Live: these numbers were measured on machines rented for this run.",
}

_PATH_NOTE = (
    "Numbers are the order of the probes, bars the interval of the measured rate; "
    "points that would overlap stand side by side."
)
_BAND_NOTE = (
    "The band is what had to be kept to finish on the best configuration measured so far, "
    "counting on the slow end of its rate. Where it passes the limit, nothing measured was safe yet."
)
_UNLIMITED_NOTE = "What was spent, {} by {}. There is no limit on it."
_LATENCY_NOTE = (
    "Numbers are the order of the trials. Up and to the left is better; what lies in the shade breaks its cap. "
    "The scale of the latency is logarithmic."
)
_BEST_NOTE = "What each trial came to; the line is the best so far of those that keep all that is asked."
_SURER_NOTE = " The choice lies lower: what is certified goes before what only keeps it as measured."
_CONFIRM_NOTE = (
    "What was spent, trial by trial. A band above it is what had to be kept to confirm the best one by another trial."
)
_FRONTIER_NOTE = (
    "What the whole job takes on each measured configuration, every probe included. "
    "The line joins those that no other beats."
)
_CURVE_NOTE = (
    "A line for each batch through its numbers of nodes. The broad line joins what nothing beats in both time and cost."
)
_INTERVAL_NOTE = "Slanted bars hold the outcome nine times of ten: what takes longer costs more."
_HOLLOW_NOTE = " Hollow marks cannot be certified: at the slow end of their rate they pass a limit."


def page(lines: Sequence[Line], boundary: Sequence[Planned] = ()) -> str:
    """The page of one run, from all its entries. `boundary`: of a run on functions, that of one epoch."""
    story = Story.of(lines)
    if isinstance(story.job.ask, FunctionsTask):
        sections = (_part(part) for part in parts(story, boundary))
        return _document(story, _serverless_header(story), *sections, *_texts(story))
    if isinstance(story.job.ask, ServingTask):
        return _document(story, _service_header(story), *_service_figures(story), *_texts(story))
    return _document(story, _header(story), *_figures(story), *_texts(story))


def curve_page(story: Story) -> str:
    """The page of a trade-off curve alone."""
    top = element("header", _about(story), element("h1", text(story.job.name)), answer(story))
    return _document(story, top, *_curve(story))


def _document(story: Story, *content: str) -> str:
    style = files("mlcd.reports").joinpath("report.css").read_text(encoding="utf-8")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        + '<meta name="color-scheme" content="light dark"><meta name="generator" content="MLCD">'
        + element("title", text(f"{story.job.name} – {story.run} – MLCD"))
        + element("style", style)
    )
    main = element("main", *content)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{main}{_footer(story)}</body></html>\n'


def _about(story: Story) -> str:
    provenance = str(story.started.provenance)
    badges = element("span", text(provenance), class_=f"badge {provenance}", title=_MEANING[provenance])
    badges += element("span", text(story.status), class_="badge status")
    written = story.lines[0].written_at
    date = element("time", f"{written:%-d %B %Y, %H:%M} UTC", datetime=written.isoformat())
    return element("p", element("span", text(story.run)), date, element("span", badges), class_="about")


def _header(story: Story) -> str:
    return element(
        "header",
        _about(story),
        element("h1", text(story.job.name)),
        answer(story),
        key_figures(story),
        certificate(story),
        actual(story),
    )


def _service_header(story: Story) -> str:
    name = element("h1", text(story.job.name))
    top = (serving.answer(story), serving.key_figures(story), serving.kept(story))
    return element("header", _about(story), name, *top)


def _serverless_header(story: Story) -> str:
    name = element("h1", text(story.job.name))
    top = (serverless.answer(story), serverless.key_figures(story), serverless.kept(story))
    return element("header", _about(story), name, *top)


def _part(part: Part) -> str:
    note = element("p", text(part.note), class_="note") if part.note else ""
    above = _figure(part.draw, part.note, listed(part.marks)) if part.draw is not None else note
    return _section(part.title, above, part.table)


def _service_figures(story: Story) -> list[str]:
    """Of a serving run: latency against the rate for the money, the best so far, and what it cost."""
    if not story.probes:
        return [_section("What was measured", element("p", "No trial was made, so there is nothing to draw."))]
    marks = legend({name: index for name, index in kinds(story).items() if name}, _service_marks(story))
    drawn = [
        _figure(partial(latency_tradeoff, story, figure=figure), _LATENCY_NOTE, marks) for figure in latencies(story)
    ]
    found = [_section("Latency against rate", *drawn)] if drawn else []
    if story.good:
        note = _BEST_NOTE + (_SURER_NOTE if _surer(story) else "")
        best = _figure(lambda width: best_so_far(story, width), note, marks)
        found.append(_section("Best so far", best))
    return [*found, _section("Spend against limit", *_spending(story))]


def _surer(story: Story) -> bool:
    """Whether something that was tried is worth more than the choice, as measured, and is not certain."""
    worths = {trial.number: value(story.job, story.together(trial)) for trial in story.good}
    return story.chosen is not None and worths[story.chosen.number] < max(worths.values())


def _service_marks(story: Story) -> list[tuple[str, str]]:
    """What the marks mean, beside their colours."""
    service = serving_task(story.job)
    broken = service is not None and any(broken_words(trial.measurement, service) for trial in story.probes)
    found = [(ring(8, 8, 6), "chosen")] if story.chosen else []
    found += [(marker(7, 8, 8, hollow=True), "breaks what is asked")] if broken else []
    return found + ([(cross(7, 8, 8), "failed")] if story.failed else [])


def _figures(story: Story) -> list[str]:
    if not story.probes:
        return _curve(story) or [
            _section("What was measured", element("p", "No probe was made, so there is nothing to draw."))
        ]
    order = type_order(story)
    ringed = [(ring(8, 8, 6), "chosen")] if story.chosen else []
    crossed = [(cross(7, 8, 8), "failed")] if story.failed else []
    path = _figure(lambda width: search_path(story, width), _PATH_NOTE, legend(order, [*ringed, *crossed]))
    found = [_section("Search path", path), _section("Spend against limit", *_spending(story))]
    if story.good and not (story.decision and story.decision.curve):  # the curve tells it better
        note = _FRONTIER_NOTE + (_HOLLOW_NOTE if story.goal.limited else "")
        shown = {name: index for name, index in order.items() if any(p.type_name == name for p in story.good)}
        drawn = _figure(lambda width: frontier(story, width), note, legend(shown, ringed))
        found.append(_section("Time against cost", drawn))
    return [*_curve(story), *found]


def _curve(story: Story) -> list[str]:
    """Of an elastic run: what each configuration was expected to take when it was decided."""
    curve = Curve.of(story)
    if curve is None:
        return []
    note = " ".join([_CURVE_NOTE, *([] if curve.relative else [_INTERVAL_NOTE]), *notes(curve)])
    drawn = _figure(lambda width: tradeoff(curve, width), note, listed(key(curve)))
    return [_section("The trade-off curve", drawn), _section("Every configuration", expected(curve))]


def _spending(story: Story) -> list[str]:
    tried = story.tries.removesuffix("s")
    band = _BAND_NOTE if not isinstance(story.job.ask, ServingTask) else _CONFIRM_NOTE
    note = band if story.goal.budget_usd is not None else _UNLIMITED_NOTE.format(tried, tried)
    figures = [_figure(lambda width: spend(story, width, Resource.USD), note)]
    if story.goal.deadline_s is not None:
        note = "The same for hours." if story.goal.budget_usd is not None else band
        figures.append(_figure(lambda width: spend(story, width, Resource.HOURS), note))
    return figures


def _texts(story: Story) -> list[str]:
    table = measured if not isinstance(story.job.ask, ServingTask) else trials
    shown = story.probes and not isinstance(story.job.ask, FunctionsTask)
    found = [_section("Everything measured", table(story))] if shown else []
    found.append(_section("The reasons", reasons(story)))
    summary = element("summary", text(f"All {counted(len(story.lines), 'entry')}"))
    note = element(
        "p", "Amounts in brackets were set aside before a launch; only what was settled was spent.", class_="note"
    )
    found.append(_section("The ledger", element("details", summary, note, ledger(story))))
    return found


def _footer(story: Story) -> str:
    started, search = story.started, story.job.search
    facts = [
        ("MLCD", started.version),
        ("Method", search.method),
        ("Seed", str(search.seed)),
        ("Cloud", started.on),
        ("Prices", "frozen when the run started"),
        ("Numbers", _MEANING[started.provenance]),
    ]
    listed = "".join(element("div", element("dt", text(k)), element("dd", text(v))) for k, v in facts)
    again = element("p", "To reproduce: ", element("code", text(command(story))))
    note = element("p", "Numbers marked simulated are not measurements.")
    return element("footer", element("dl", listed), again, note)


def command(story: Story) -> str:
    """The command line that makes this search again from its job file."""
    search, goal = story.job.search, story.goal
    if isinstance(story.job.ask, ServingTask):
        return _serve_command(story, story.job.ask)
    if isinstance(story.job.ask, FunctionsTask):
        return serverless_command(story)
    verb = "train" if not isinstance(story.job.ask, ScalingTask) else "scale"
    words = ["mlcd", verb, "JOB.yaml", "--decide-only", "--on", story.started.on, "--goal", str(goal.objective)]
    words += ["--budget", f"{goal.budget_usd:.10g}"] if goal.budget_usd is not None else []
    words += ["--deadline", f"{goal.deadline_s:.10g}s"] if goal.deadline_s is not None else []
    if (elastic := scaling_task(story.job)) is not None:
        words += ["--workers", "..".join(str(count) for count in elastic.workers), "--search", str(elastic.mode)]
        words += ["--batch", ",".join(str(batch) for batch in elastic.batches)] if elastic.batches else []
        return shlex.join([*words, "--seed", str(search.seed)])
    return shlex.join([*words, "--method", search.method, "--seed", str(search.seed)])


def _serve_command(story: Story, service: ServingTask) -> str:
    search, goal = story.job.search, story.goal
    model = service.file or service.model.name
    words = ["mlcd", "serve", model, "--on", story.started.on, "--goal", str(goal.objective)]
    words += ["--knobs", "KNOBS.yaml"] if service.table is not None else []
    for cap in service.caps:
        name = str(cap.figure).replace("_", "-")
        words += [f"--{name}" if "-" in name else f"--latency-{name}", f"{1_000 * cap.at_most_s:.10g}ms"]
    words += ["--min-rps", f"{service.min_rate:.10g}"] if service.min_rate is not None else []
    words += ["--budget", f"{goal.budget_usd:.10g}"] if goal.budget_usd is not None else []
    words += ["--deadline", f"{goal.deadline_s:.10g}s"] if goal.deadline_s is not None else []
    words += ["--trials", str(search.trials)] if search.trials is not None else []
    words += ["--knowledge", service.knowledge] if service.knowledge else []
    words += [word for axis, size in service.shapes.items() for word in ("--shape", f"{axis}={size}")]
    return shlex.join([*words, "--method", search.method, "--seed", str(search.seed)])


def _figure(draw: Callable[[int], str], note: str, below: str = "") -> str:
    return element("figure", draw(WIDE), draw(NARROW), below, element("figcaption", text(note)))


def _section(title: str, *content: str) -> str:
    return element("section", element("h2", text(title)), *content)
