/** Numbers of a figure or a table that a planner describes, in words, and where they lie on an axis. */

import { duration, significant, usd } from "../format";
import type { Figure, Table } from "../types";
import type { Axis } from "./plotFrame";
import { rateTick, spread, ticks, timeTick, timeTicks, usdTick } from "./ticks";

type Scale = Figure["x"];
type Cell = Table["rows"][number][number];

/** A value with its unit: money and time as everywhere. */
export function inWords(value: Cell, unit: string): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return value ?? "–";
  if (unit === "usd") return usd(value);
  if (unit === "s") return duration(value);
  return `${significant(value)}${unit && ` ${unit}`}`;
}

/** A value on an axis: by the name that stands there, if it has names. */
export function onAxis(value: Cell, { names, unit }: Scale): string {
  return typeof value === "number" && names.length > 0 ? (names[value - 1] ?? "") : inWords(value, unit);
}

/** A mark, where its names and its logarithm have put it. A line joins the marks of one piece: between two is a gap. */
export interface Placed {
  series: number;
  piece: number;
  x: number;
  y: number;
  words: string;
}

/** Bars may stand on names: those of all series, in order; null where x is a number. */
export function namesOf({ series }: Figure): string[] | null {
  const across = series.flatMap((each) => each.points.map((point) => point.x));
  return across.some((x) => typeof x === "string") ? [...new Set(across.map(String))] : null;
}

/** The points that can be drawn: what is not known, or has no logarithm on such an axis, cannot. */
export function placed(figure: Figure): Placed[] {
  const names = namesOf(figure);
  const { x: across, y: up } = figure;
  return figure.series.flatMap(({ name, points }, series) => {
    let piece = 0;
    return points.flatMap((point) => {
      const x = names ? names.indexOf(String(point.x)) + 1 : Number(point.x);
      if (point.y === null) piece += 1;
      if (point.y === null || (up.scale === "log" && point.y <= 0)) return [];
      if (!names && across.scale === "log" && x <= 0) return [];
      const values = `${onAxis(point.x, across)}: ${onAxis(point.y, up)}`;
      return [{ series, piece, x, y: point.y, words: [point.label || name, values].filter(Boolean).join("\n") }];
    });
  });
}

export function axisOf({ label, unit, scale }: Scale, values: number[], most: number): Axis {
  const log = scale === "log";
  const domain = spread(values, log, 0.08);
  const isTime = unit === "s";
  const shown = isTime || unit === "usd" || unit === "" ? label : `${label}, ${unit}`;
  return {
    domain,
    log,
    ticks: isTime ? timeTicks(domain, most, log) : ticks(domain, most, log),
    format: isTime ? timeTick : unit === "usd" ? usdTick : rateTick,
    label: shown,
  };
}

/** An axis of names: each has a place of its own. */
export function nameAxis(label: string, names: string[], most: number): Axis {
  const every = Math.ceil(names.length / most);
  return {
    domain: [0.5, names.length + 0.5],
    ticks: names.map((_, i) => i + 1).filter((n) => (n - 1) % every === 0),
    format: (n) => names[n - 1] ?? "",
    label,
  };
}
