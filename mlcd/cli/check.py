"""mlcd check: what is installed, which backends can run here, what is missing and how to get it."""

from __future__ import annotations

import click

from mlcd.cli.options import consoles, output, print_json


@click.command()
@click.argument("backend", required=False)
@output
def check(backend: str | None, output: str) -> int:
    """What is installed, which backends can run here, what is missing and how to get it.

    BACKEND: what that backend needs, such as skypilot.
    """
    from mlcd.support import checks

    found = checks(backend)
    if output == "json":
        print_json({"checks": [{"what": c.what, "ok": c.ok, "found": c.found, "to_do": c.to_do} for c in found]})
    else:
        from rich.markup import escape

        results, _ = consoles()
        for c in found:
            mark = "[green]✔[/green]" if c.ok else "[yellow]-[/yellow]"
            results.print(f"{mark} [bold]{c.what}[/bold]  {escape(c.found)}", highlight=False)
            if c.to_do:
                results.print(f"    {c.to_do}", style="dim", highlight=False, markup=False)
    return 0 if all(c.ok for c in found if c.needed) else 1
