"""What the limits forbid: shaded, with a line and words along it. Time goes across, cost goes up."""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.reports.figures.axes import CHARACTER, Area, Room
from mlcd.reports.markup import element, text


@dataclass(frozen=True)
class Limits:
    """A deadline and a budget, each where it lies in pixels, with its words; None for none."""

    area: Area
    deadline: tuple[float, str] | None = None
    budget: tuple[float, str] | None = None

    def forbidden(self) -> str:
        """Everything beyond them."""
        area, drawn = self.area, []
        if self.deadline is not None:
            at = self.deadline[0]
            box = {"x": at, "y": area.top, "width": area.right - at, "height": area.bottom - area.top}
            drawn.append(element("rect", class_="forbidden", **box))
            drawn.append(element("line", x1=at, x2=at, y1=area.top, y2=area.bottom, class_="limit"))
        if self.budget is not None:
            at = self.budget[0]
            box = {"x": area.left, "y": area.top, "width": area.right - area.left, "height": at - area.top}
            drawn.append(element("rect", class_="forbidden", **box))
            drawn.append(element("line", x1=area.left, x2=area.right, y1=at, y2=at, class_="limit"))
        return "".join(drawn)

    def take(self, room: Room) -> None:
        """Take the lines, so that no label covers them."""
        if self.deadline is not None:
            room.take((self.deadline[0] - 1, self.area.top, self.deadline[0] + 1, self.area.bottom))
        if self.budget is not None:
            room.take((self.area.left, self.budget[0] - 1, self.area.right, self.budget[0] + 1))

    def names(self, room: Room) -> str:
        """The words, along the lines, where they cover least."""
        area, drawn = self.area, []
        if self.deadline is not None:
            at, words = self.deadline
            long = CHARACTER * len(words) + 8
            starts = (area.bottom - 8, area.top + long + 4, (area.top + area.bottom + long) / 2)
            # inside the allowed side where that is wide enough, otherwise beyond the line
            shift = -6.0 if at - area.left > 24 else 14.0
            box = room.among([(at + shift - 11, start - long, at + shift + 3, start) for start in starts])
            left, bottom = at + shift, box[3]
            turn = f"rotate(-90 {left:.1f} {bottom:.1f})"
            drawn.append(element("text", text(words), x=left, y=bottom, transform=turn, class_="label limit-words"))
        if self.budget is not None:
            at, words = self.budget
            long = CHARACTER * len(words) + 8
            starts = (area.left + 8, area.right - long - 4, (area.left + area.right - long) / 2)
            box = room.among([(start, at - 17, start + long, at - 2) for start in starts])
            drawn.append(element("text", text(words), x=box[0], y=at - 6, class_="label limit-words"))
        return "".join(drawn)
