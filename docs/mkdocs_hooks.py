"""Hooks of MkDocs that make the site show what GitHub shows; the files of docs/ stay as they are.

Links to files outside of docs/, which MkDocs does not know: the site gets a page for each such file or folder, Markdown
as it is, source as a listing, and links lead there. Escaped pipes in tables: they are shown without the backslash.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from posixpath import relpath
from typing import Any

from mkdocs.structure.files import File, InclusionLevel

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
OUTSIDE = "repository"
"""The folder of the site that these pages are in."""
LANGUAGES = {".py": "python", ".yaml": "yaml", ".toml": "toml", ".ts": "typescript", ".sh": "bash"}
LINK = re.compile(r"(?P<before>\]\(|^\[[^\]\n]+\]: )(?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?", re.MULTILINE)
FENCED = re.compile(r"^(`{3,}).*?^\1`*$", re.MULTILINE | re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add a page for everything outside of docs/ that can be reached from it."""
    waiting = [DOCS / page.src_uri for page in files.documentation_pages()]
    added: set[Path] = set()
    while waiting:
        page = waiting.pop()
        for target in _links(page):
            if target not in added and not target.is_relative_to(DOCS):
                added.add(target)
                waiting.append(target)
                content = _content(target)
                files.append(File.generated(config, _uri(target), content=content, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with links as the site has them."""
    uri = page.file.src_uri
    if not uri.startswith(f"{OUTSIDE}/"):
        origin = DOCS / uri
    elif (origin := ROOT / uri.removeprefix(f"{OUTSIDE}/")).name == "index.md" or not origin.exists():
        return markdown  # a listing

    def rewritten(link: re.Match[str]) -> str:
        target = _target(origin, link["target"])
        if target is None or (target.is_relative_to(DOCS) and origin.is_relative_to(DOCS)):
            return link[0]
        return f"{link['before']}{relpath(_uri(target), PurePosixPath(uri).parent)}{link['anchor'] or ''}"

    return _outside_of_code(markdown, lambda text: LINK.sub(rewritten, text))


def on_page_content(html: str, **_: Any) -> str:
    """Cells of tables without the backslash that keeps a pipe from ending them."""
    return re.sub(r"<td.*?</td>", lambda cell: cell[0].replace("\\|", "|"), html, flags=re.DOTALL)


def _links(page: Path) -> list[Path]:
    """The files and folders of the repository that a page links to."""
    if page.suffix != ".md":
        return []
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    found = (_target(page, link["target"]) for link in LINK.finditer(text))
    return [target for target in found if target is not None]


def _target(page: Path, link: str) -> Path | None:
    """The file of the repository that a link of a page leads to; None: it leads elsewhere, or nowhere."""
    if re.match(r"[a-z]+:", link):
        return None
    target = (page.parent / link).resolve()
    if (target / "README.md").exists():
        target /= "README.md"
    return target if target.exists() and target.is_relative_to(ROOT) else None


def _uri(target: Path) -> str:
    """Where the site has a file or a folder, as MkDocs names the source of a page."""
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    uri = f"{OUTSIDE}/{target.relative_to(ROOT).as_posix()}"
    if target.is_dir():
        return f"{uri}/index.md"
    return uri if target.suffix == ".md" else f"{uri}.md"


def _content(target: Path) -> str:
    if target.suffix == ".md":
        return target.read_text(encoding="utf-8")
    if target.is_dir():
        language = "text"
        listing = "".join(f"{each.name}\n" for each in sorted(target.iterdir()) if each.name != "__pycache__")
    else:
        language = LANGUAGES.get(target.suffix, "text")
        listing = target.read_text(encoding="utf-8")
    title = target.relative_to(ROOT).as_posix()
    return f"---\ntitle: {title}\nsearch:\n  exclude: true\n---\n\n# {title}\n\n`````{language}\n{listing}`````\n"


def _outside_of_code(text: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for block in FENCED.finditer(text):
        parts += [change(text[end : block.start()]), block[0]]
        end = block.end()
    return "".join((*parts, change(text[end:])))
