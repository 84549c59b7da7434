"""Markup as strings: one function that escapes, one that writes an element and always closes it."""

from __future__ import annotations

import re
from html import escape

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def text(value: object) -> str:
    """Words of the user, safe inside an element or an attribute, of HTML and of SVG."""
    return escape(_UNPRINTABLE.sub("�", str(value)))


def element(name: str, *content: str, **attributes: object) -> str:
    """An element around markup. `class_` and `stroke_width` are written as HTML spells them; None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(_short(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(content)}</{name}>"


def _short(value: object) -> object:
    """Pixels to a tenth: more digits are only weight."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value
