/** A time line: rows, a bar for each piece of a series, a mark where a piece is one moment. */

import type { Figure as Described } from "../types";
import { colour, crossed, outline } from "./marks";
import { add, type Draw } from "./plotFrame";
import type { Placed } from "./describedFigure";

/** The height of a row and of a bar in it, in pixels. */
export const ROW = 40;
const BAR = 16;
/** As far apart as pointers find what lies between, in pixels. */
const FOUND_EVERY = 24;

type Series = Described["series"][number];

export interface Span extends Placed {
  to: number;
}

/** The pieces of all series, from their first to their last point. */
export function spansOf(points: Placed[]): Span[] {
  const found = new Map<string, Span>();
  for (const point of points) {
    const key = `${point.series} ${point.piece}`;
    const begun = found.get(key);
    if (begun) begun.to = point.x;
    else found.set(key, { ...point, to: point.x });
  }
  return [...found.values()];
}

export function tint(index: number, look: Series["look"]): string {
  return look === "limit" ? "var(--limit)" : look === "quiet" ? "var(--axis)" : colour(index);
}

/** What is lost lies on the bar that it was lost from. Moments lie above the bars; quiet ones, on the row. */
export function spans(found: Span[], { series }: Described): Draw {
  return (group, at) => {
    for (const { series: index, x, to, y } of found.filter((each) => each.to > each.x)) {
      const look = series[index]!.look;
      const thin = look === "quiet" ? BAR / 2 : BAR;
      add(group, "rect", {
        x: at.x(x),
        y: at.y(y) - thin / 2,
        width: Math.max(2, at.x(to) - at.x(x)),
        height: thin,
        rx: 2,
        class: "mark span",
        fill: tint(index, look),
      });
    }
    for (const { series: index, x, y } of found.filter((each) => each.to === each.x)) {
      const quiet = series[index]!.look === "quiet";
      add(group, "path", {
        d: quiet ? crossed(3.2) : outline(index, 3.8),
        transform: `translate(${at.x(x)} ${at.y(y) - (quiet ? 0 : BAR / 2 + 5)})`,
        class: quiet ? "cross" : "mark",
        ...(quiet ? { stroke: "var(--axis)" } : { fill: "var(--ink)" }),
      });
    }
  };
}

/** Where a pointer finds what a bar reads: all along it. */
export function along(found: Span[], perPixel: number): Placed[] {
  return found.flatMap(({ to, ...span }) => {
    const steps = Math.ceil((to - span.x) / (FOUND_EVERY * perPixel));
    return Array.from({ length: steps + 1 }, (_, i) => ({ ...span, x: steps ? span.x + ((to - span.x) * i) / steps : span.x }));
  });
}

/** Whether a series has moments alone; null: nothing at all. */
export function isOfMoments(found: Span[], index: number): boolean | null {
  const own = found.filter((each) => each.series === index);
  return own.length === 0 ? null : own.every((each) => each.to === each.x);
}
