"""The last lines of a job's log, for an agent."""

from mlcd.clouds.log_lines import without_colours
from mlcd.service.agents import answers
from mlcd.service.agents.agent_client import printable
from mlcd.service.remote.server import Server, run_path

MOST_LINES, MOST_LETTERS = 400, 20_000


def log_tail(server: Server, run: str, lines: int, launch: int | None, process: int) -> answers.JobLog:
    """The last lines as a terminal would show them, without colours and control characters."""
    found = server.get(f"{run_path(run, 'logs')}/lines", launch=launch, process=process)
    with server.reading():
        window = answers.LogWindow.model_validate(found)
    kept = [printable(without_colours(line.text).expandtabs()) for line in window.lines[-lines:]]
    text = "\n".join(kept)
    return answers.JobLog(
        run=run,
        launch=window.launch,
        text=text[-MOST_LETTERS:],
        earlier=window.start > 0 or len(window.lines) > lines or len(text) > MOST_LETTERS,
        done=window.done,
    )
