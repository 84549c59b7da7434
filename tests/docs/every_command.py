"""Every command of the command line, by the words that call it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from mlcd.cli import cli


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from _commands(found, f"{name} {child}")


EVERY = dict(_commands(cli, "mlcd"))
ALONE = {name: command for name, command in EVERY.items() if not isinstance(command, click.Group)}
"""Without those that only have others below them."""
