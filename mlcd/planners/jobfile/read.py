"""Read a job from a file or text, or report its first mistake, or all mistakes."""

from __future__ import annotations

from pathlib import Path

from mlcd.core.errors import JobFileError
from mlcd.core.job import Job
from mlcd.planners.jobfile.mistakes import checked, misnamed
from mlcd.planners.jobfile.source import Mistake, read_source
from mlcd.planners.jobfile.task import task_of


def load_job(path: str | Path) -> Job:
    """The job of a file; `JobFileError` says what is wrong, and where."""
    path = Path(path)
    return parse_job(text_of(path), path)


def text_of(path: Path) -> str:
    """The text of a job file; `JobFileError` if it cannot be read."""
    try:
        str(path.absolute()).encode()  # the ledger stores the folder as text
        return path.read_text(encoding="utf-8")
    except UnicodeEncodeError:
        raise JobFileError(f"{str(path)!a}: not UTF-8 text; rename it") from None
    except FileNotFoundError:
        raise JobFileError(f"{path}: no such file; a job file is a SkyPilot task with an `mlcd:` block") from None
    except (OSError, UnicodeError) as error:
        raise JobFileError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from error


def parse_job(text: str, path: Path, *, reads_files: bool = True) -> Job:
    """The job of a text. `path`: its file's name for messages; relative paths in it are relative to that folder.

    `reads_files`: whether it may name files of this machine, which are read now.
    """
    source = read_source(text)
    block, mistakes = checked(source, path.parent if reads_files else None)
    if block is None or mistakes:
        raise JobFileError(mistakes[0].in_file(path), more=len(mistakes) - 1, file=str(path))
    return block.job(str(source.written.get("name") or path.stem), task_of(source.written), path.parent)


def mistakes_in(text: str, folder: Path | None) -> list[Mistake]:
    """All mistakes in a job file, by line. `folder`: where files that it names are read."""
    source = read_source(text)
    block, mistakes = checked(source, folder)
    if block is not None:
        mistakes += misnamed(source, block)
    return sorted(dict.fromkeys(mistakes), key=lambda each: (each.line, each.column))
