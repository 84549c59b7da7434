/** Marks of a chart of time against cost: the Pareto boundary, worst cases, the knee, the chosen one, names. */

import { colour, outline } from "./marks";
import { add, type Draw, lineOf, type Placed } from "./plotFrame";
import { LabelPlacer } from "./labelPlacement";

/** Where a configuration stands. */
export interface Stand {
  label: string;
  series: string;
  x: number;
  y: number;
  worst: [number, number] | null;
  measured: boolean;
  frontier: boolean;
  knee: boolean;
  /** Else hollow. */
  full: boolean;
}

/** Of more, only those on the boundary and the chosen one have their worst case drawn. */
const CROWD = 40;

/** A boundary of one or two corners does not bend. */
const BENDS = 3;

export function bend(stands: { frontier: boolean; knee: boolean; label: string }[]): string | null {
  if (stands.filter((each) => each.frontier).length < BENDS) return null;
  return stands.find((each) => each.knee)?.label ?? null;
}

/** `limits`: what their words and lines take on the chart. */
export function front(
  stands: Stand[],
  order: Map<string, number>,
  chosen: string | null,
  limits?: (room: LabelPlacer, at: Placed) => void,
): Draw[] {
  const best = stands.filter((each) => each.frontier).sort((a, b) => a.x - b.x);
  const barred = stands.length > CROWD ? stands.filter((each) => each.frontier || each.label === chosen) : stands;
  return [boundary(best), bars(barred, order), marks(stands, order, chosen), names(stands, best, chosen, limits)];
}

/** Down in steps: between two corners nothing was measured. */
function boundary(best: Stand[]): Draw {
  return (group, at) => {
    if (best.length > 0) add(group, "path", { d: lineOf(staircase(best, at)), class: "boundary" });
  };
}

function staircase(best: Stand[], at: Placed): [number, number][] {
  const corners: [number, number][] = [[at.x(best[0]!.x), at.top]];
  for (const { x, y } of best) corners.push([at.x(x), corners.at(-1)![1]], [at.x(x), at.y(y)]);
  return [...corners, [at.right, corners.at(-1)![1]]];
}

/** What takes longer costs more: the worst case lies up and to the right. */
function bars(stands: Stand[], order: Map<string, number>): Draw {
  return (group, at) => {
    for (const { x, y, worst, series } of stands) {
      if (worst === null) continue;
      const ends: [number, number][] = [
        [at.x(x), at.y(y)],
        [at.x(worst[0]), at.y(worst[1])],
      ];
      const d = `${lineOf(ends)}m-3,0h6m-3,-3v6`;
      add(group, "path", { d, class: "whisker", stroke: colour(order.get(series)!) });
    }
  };
}

function marks(stands: Stand[], order: Map<string, number>, chosen: string | null): Draw {
  const knee = bend(stands);
  return (group, at) => {
    for (const each of stands) {
      const index = order.get(each.series)!;
      const transform = `translate(${at.x(each.x)} ${at.y(each.y)})`;
      add(group, "path", {
        d: outline(index, each.measured && stands.length <= CROWD ? 5 : 3.4),
        transform,
        class: each.full ? "mark" : "hollow",
        [each.full ? "fill" : "stroke"]: colour(index),
      });
      const rung = each.label === chosen;
      const half = rung ? 15 : 9;
      if (each.label === knee)
        add(group, "rect", { x: -half, y: -half, width: 2 * half, height: 2 * half, transform, class: "knee" });
      if (rung) add(group, "circle", { r: 11, transform, class: "ring" });
    }
  };
}

/** Names of the chosen one and on the boundary, wherever there is room; of all where there is no boundary. */
function names(
  stands: Stand[],
  best: Stand[],
  chosen: string | null,
  limits: ((room: LabelPlacer, at: Placed) => void) | undefined,
): Draw {
  return (group, at) => {
    const room = new LabelPlacer([at.left, at.top, at.right, at.bottom]);
    for (const { x, y, worst } of stands) {
      const [left, top] = [at.x(x), at.y(y)];
      room.take([left - 6, top - 6, left + 6, top + 6]);
      if (worst !== null)
        room.takeLine([
          [left, top],
          [at.x(worst[0]), at.y(worst[1])],
        ]);
    }
    limits?.(room, at);
    if (best.length > 0) room.takeLine(staircase(best, at));
    const first = stands.filter((each) => each.label === chosen);
    const others = (best.length > 0 ? best : stands).filter((each) => each.label !== chosen);
    for (const { label, x, y } of [...first, ...others]) {
      const strong = label === chosen;
      const spot = room.label(at.x(x), at.y(y), label, strong ? 14 : 10);
      if (!spot) continue;
      const look = { "text-anchor": spot.anchor, class: strong ? "label strong" : "label soft" };
      add(group, "text", { x: spot.x, y: spot.y, ...look }, label);
    }
  };
}
