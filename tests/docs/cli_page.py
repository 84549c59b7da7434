"""The reference of the command line: what click knows is written by this file, the rest by hand.

`python tests/docs/cli_page.py` writes docs/reference/cli.md again, once a command, an option or a help has changed.

From click: the list of commands, each command's heading, its examples and its table of options. They stand between
`<!-- from --help -->` and `<!-- end -->`. By hand: all text outside of these marks, and the third column of a table of
options, which says what the help has no room for. A note stays with its option when the table is written again.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from every_command import EVERY

from mlcd.cli import COMMANDS, PARTS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
BEGIN, END = "<!-- from --help -->", "<!-- end -->"
DESCRIBED = {
    name: command
    for name, command in EVERY.items()
    if not isinstance(command, click.Group) or (name != "mlcd" and command.invoke_without_command)
}
"""Commands with a section of their own: those that do something by themselves."""


def written_again(page: str) -> str:
    """The page as click has it today."""
    top, *sections = re.split(r"(?m)^(?=## )", page)
    found = set()
    for index, section in enumerate(sections):
        heading, _, rest = section.partition("\n")
        if (name := _about(heading.removeprefix("## "))) is not None:
            found.add(name)
            sections[index] = f"## {_heading(name)}\n{_replaced(rest, _from_help(name, _notes(rest)))}"
    if missing := DESCRIBED.keys() - found:
        raise LookupError(f"{PAGE.name} has no section for: {', '.join(sorted(missing))}; begin one with '## NAME'")
    return "".join((_replaced(top, _list_of_commands()), *sections))


def _about(heading: str) -> str | None:
    """The command that a heading is about; the longest name, since `mlcd models` begins `mlcd models show`."""
    fitting = [name for name in DESCRIBED if heading == name or heading.startswith(f"{name} ")]
    return max(fitting, key=len, default=None)


def _replaced(text: str, lines: Iterator[str]) -> str:
    """The text with these lines between its marks; at its end, where it has none."""
    block = "\n".join((BEGIN, "", *lines, END))
    if BEGIN in text:
        return text[: text.index(BEGIN)] + block + text[text.index(END) + len(END) :]
    return f"{text.rstrip()}\n\n{block}\n\n"


def _list_of_commands() -> Iterator[str]:
    yield from ("| command | what it does |", "|---|---|")
    for first in COMMANDS:
        if first in PARTS:
            yield f"| **{PARTS[first]}** | |"
        for name, command in DESCRIBED.items():
            if name.split()[1] == first:
                heading = _heading(name)
                yield f"| [`{heading}`](#{_anchor(heading)}) | {command.get_short_help_str(200)} |"
    yield ""


def _heading(name: str) -> str:
    command = EVERY[name]
    arguments = [] if isinstance(command, click.Group) else command.collect_usage_pieces(click.Context(command))
    return " ".join((name, *(word for word in arguments if word != "[OPTIONS]")))


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _from_help(name: str, notes: dict[str, str]) -> Iterator[str]:
    """The examples of a command and its options, each with its note."""
    command = EVERY[name]
    examples = re.findall(r"(?m)^((?:[A-Z_]+=\S+ )?mlcd .*)$", inspect.cleandoc(command.help or "").partition("\b")[2])
    if examples:
        yield from ("```bash", *examples, "```", "")
    options = [each for each in command.params if isinstance(each, click.Option)]
    unknown = notes.keys() - {option.opts[-1] for option in options}
    if unknown:
        raise LookupError(f"{PAGE.name} has notes on options that '{name}' does not have: {', '.join(sorted(unknown))}")
    if not options:
        return
    noted = any(notes.values())
    yield "| option | meaning | more |" if noted else "| option | meaning |"
    yield "|---|---|---|" if noted else "|---|---|"
    for option in options:
        note = f" {notes.get(option.opts[-1], '')} |".replace("  |", " |") if noted else ""
        yield f"| {_spelled(option)} | {_meaning(option)} |{note}"
    yield ""


def _notes(section: str) -> dict[str, str]:
    """What was written by hand behind each option, by the option's longest name."""
    notes = {}
    for row in re.findall(r"(?m)^\| `-.*\|$", section.partition(BEGIN)[2].partition(END)[0]):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        if len(cells) == 3 and cells[2]:
            option = re.findall(r"`(--?[\w-]+)", cells[0].partition(" / ")[0])[-1]
            notes[option] = cells[2]
    return notes


def _spelled(option: click.Option) -> str:
    """As it is typed: `-o`, `--output table|json`."""
    *short, last = option.opts
    value = "" if option.is_flag else f" {option.metavar or _kind(option.type)}"
    names = ", ".join((*(f"`{name}`" for name in short), f"`{last}{value}`"))
    return " / ".join((names, *(f"`{name}`" for name in option.secondary_opts))).replace("|", "\\|")


def _kind(kind: click.ParamType) -> str:
    if isinstance(kind, click.Choice):
        return "|".join(map(str, kind.choices))
    return kind.name.upper().removesuffix(" RANGE")


def _meaning(option: click.Option) -> str:
    """The help, with what click adds to it: whether it is required, the default, what is allowed."""
    told = [(option.help or "").replace("|", "\\|")]
    if option.required:
        told.append("Required.")
    if option.show_default:
        default: Any = option.default
        if option.secondary_opts:
            default = (option.opts if default else option.secondary_opts)[-1]
        told.append(f"Default: `{default}`.")
    if isinstance(option.type, click.IntRange | click.FloatRange):
        told.append(_allowed(option.type))
    return " ".join(told)


def _allowed(kind: click.IntRange | click.FloatRange) -> str:
    if kind.max is None or kind.max > 10**9:
        return f"More than {kind.min}." if kind.min_open else f"At least {kind.min}."
    return f"Allowed: {kind.min} to {kind.max}."


if __name__ == "__main__":
    PAGE.write_text(written_again(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
