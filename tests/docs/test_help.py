"""`--help` says all there is, in whole lines, with examples that can be typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest
from every_command import ALONE, EVERY

from mlcd.cli import COMMANDS, PARTS, cli

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference" / "cli.md"


def told(name: str, command: click.Command) -> str:
    return command.get_help(click.Context(command, info_name=name, terminal_width=80))


@pytest.mark.parametrize("name", EVERY)
def test_no_line_of_a_help_is_cut(name: str):
    lines = told(name, EVERY[name]).splitlines()
    assert [line for line in lines if line.endswith("...") and not line.startswith("Usage: ")] == []


@pytest.mark.parametrize("name", EVERY)
def test_every_option_is_explained(name: str):
    assert [each.name for each in EVERY[name].params if isinstance(each, click.Option) and not each.help] == []


@pytest.mark.parametrize("name", ALONE)
def test_every_command_has_an_example_with_options_that_exist(name: str):
    command = ALONE[name]
    found = re.findall(rf"(?m)^  (?:[A-Z_]+=\S+ )?{name}\b(.*)$", told(name, command))
    assert found
    for arguments in found:
        context = click.Context(command, info_name=name)
        command.make_parser(context).parse_args(shlex.split(arguments))


def test_the_help_and_the_reference_list_every_command_in_the_same_parts():
    lines = told("mlcd", cli).split("Options:")[1].splitlines()
    parts = [line.rstrip(":") for line in lines if line and not line.startswith(" ")]
    assert parts == list(PARTS.values())
    assert [
        match[1] for line in lines if (match := re.match(r"  ([a-z-]+) +[A-Z]", line)) and match[1] in COMMANDS
    ] == [*COMMANDS]
    overview = REFERENCE.read_text(encoding="utf-8").split("## What all commands share")[0]
    assert re.findall(r"(?m)^\| \*\*(.+?)\*\* \|", overview) == parts
    linked = [name.split()[0] for name in re.findall(r"(?m)^\| \[`mlcd (.+?)`\]", overview)]
    assert list(dict.fromkeys(linked)) == [*COMMANDS]


def test_the_line_of_a_command_is_the_first_of_its_own_help():
    shorts = {name: EVERY[f"mlcd {name}"].get_short_help_str(200) for name in COMMANDS}
    assert shorts == {name: summary for name, (_, summary) in COMMANDS.items()}


PAGES = sorted(page for place in ("*.md", "docs/**/*.md", "examples/*.md") for page in ROOT.glob(place))
ADDED = "infer"
"""The command of `tests/fifth_planner`: it is there only where that package is installed."""


def shown(page: Path) -> Iterator[list[str]]:
    """The commands that a page shows, in blocks and in lines; without what is left out with dots."""
    text = page.read_text(encoding="utf-8")
    lines = re.findall(r"(?m)^(?: {4}|\$ )?((?:MLCD_\w+=\S+ +)?(?:\.venv/bin/)?mlcd .*)$", text) + re.findall(
        r"`(mlcd [^`]*)`", text
    )
    for line in lines:
        for command in re.split(r"[;|>](?= )|  +#| # ", line.replace("\\|", "")):
            if (found := re.search(r"\bmlcd ([a-z-].*)", command)) and "..." not in found[1]:
                with suppress(ValueError):  # an apostrophe of prose
                    yield shlex.split(found[1])


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_command_that_a_page_shows_exists_with_its_options(page: Path):
    for words in shown(page):
        command: click.Command = cli
        context = click.Context(cli)
        if words[0] == ADDED and cli.get_command(context, ADDED) is None:
            continue
        while words and isinstance(command, click.Group):
            if words[0] == "--server":
                words = words[2:]
            elif (child := command.get_command(context, words[0])) is not None:
                command, words = child, words[1:]
            else:
                break
        known = {word for each in command.params for word in (*each.opts, *each.secondary_opts)}
        options = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert options <= known | {"-h", "--help", "--version"}, (command.name, words)
        assert command is not cli or not words or words[0] in ("--version", "--help", "COMMAND"), words


@pytest.mark.parametrize("name", sorted(ALONE))
def test_every_choice_is_a_plain_word(name: str):
    """An enumeration is offered by its values in click 8.1, and by the names of its members since 8.2."""
    for option in ALONE[name].params:
        if isinstance(option.type, click.Choice):
            assert {type(choice) for choice in option.type.choices} == {str}, option.name
