/** Spending over time, the reserve above it, and the limit for both. */

import type { JSX } from "preact";
import { duration, usd } from "../format";
import type { Finish, SpendPoint, Spending } from "../types";
import { Figure } from "./Figure";
import { add, type Draw, type Drawn, lineOf, plotted } from "./plotFrame";
import { CHARACTER, LabelPlacer } from "./labelPlacement";
import { ticks, timeTick, timeTicks, usdTick } from "./ticks";

interface Props {
  spend: Spending;
  /** Expected time and cost of the decided run; null if it is over, or nothing is decided. */
  ahead?: Finish | null;
}

/** The share of the width that the search keeps where the run itself is many times as long. */
const SEARCH_SHARE = 0.6;

export function Spend({ spend, ahead = null }: Props): JSX.Element {
  const points = fromZero(spend.points);
  const last = points.at(-1)!;
  const kept = spend.budget_usd !== null && points.some((point) => point.kept_usd !== null);
  const note = [
    kept && "The band is the reserve: the worst-case cost to finish on the best configuration so far.",
    passes(points, spend) && "Where it exceeds the limit, no measured configuration was safe yet.",
    broken(points, spend, ahead) && "The scale of the time axis changes at the last probe.",
  ];
  return (
    <Figure
      title={spend.budget_usd === null ? "Spend over time" : "Spend against limit"}
      summary={`${usd(last.spent_usd)} spent after ${duration(last.elapsed_s)}${spend.budget_usd === null ? "; there is no limit" : `; the budget is ${usd(spend.budget_usd)}`}.`}
      note={note.filter(Boolean).join(" ") || undefined}
      keys={keys(kept || isTimeKept(last, spend), ahead)}
      table={{
        head: ["After", "Elapsed", "Spent", "Reserve", "Sum"],
        rows: spend.points.map((point) => [
          point.label || "start",
          duration(point.elapsed_s),
          usd(point.spent_usd),
          point.kept_usd === null ? null : usd(point.kept_usd),
          usd(point.spent_usd + (point.kept_usd ?? 0)),
        ]),
      }}
      draw={(width) => drawn(width, points, spend, ahead)}
      of={[spend, ahead]}
    />
  );
}

function keys(kept: boolean, ahead: Finish | null) {
  return [
    { mark: <path d="M-8,5h6V-1h6V-5h4" class="spent" />, words: "spent" },
    ...(kept ? [{ mark: <rect x={-8} y={-6} width={16} height={12} class="band" />, words: "reserve" }] : []),
    ...(ahead ? [{ mark: <path d="M-8,5L8,-5" class="spent expected" />, words: "expected" }] : []),
  ];
}

/** A search starts with nothing spent. */
function fromZero(points: SpendPoint[]): SpendPoint[] {
  if (points[0]?.elapsed_s === 0 && points[0].spent_usd === 0) return points;
  return [{ elapsed_s: 0, spent_usd: 0, kept_usd: null, kept_s: null, label: "", purpose: "probe" }, ...points];
}

function drawn(width: number, points: SpendPoint[], spend: Spending, ahead: Finish | null): Drawn {
  const wide = width >= 560;
  const last = points.at(-1)!;
  const limit = spend.budget_usd;
  const warp = warped(points, spend, ahead);
  const expected = ahead && { at: last.elapsed_s + ahead.seconds, usd: last.spent_usd + ahead.usd };
  const top = Math.max(last.spent_usd, expected?.usd ?? 0, (limit ?? 0) * 1.12) * 1.06 || 1;
  const marks = [
    ...timeTicks([0, warp.middle], warp.end > warp.middle ? (wide ? 4 : 2) : wide ? 7 : 4),
    ...(warp.end > warp.middle
      ? timeTicks([0, warp.end], wide ? 4 : 3).filter(
          (tick) => warp.to(tick) > warp.to(warp.middle) + (wide ? 0.05 : 0.1),
        )
      : []),
  ];
  return plotted(
    width,
    wide ? 330 : 290,
    {
      domain: [0, 1],
      ticks: marks.map(warp.to),
      format: (share) => timeTick(Math.round(warp.from(share) * 1000) / 1000),
      label: "time since the start",
      inset: [0, 6],
    },
    { domain: [0, top], ticks: ticks([0, top], 5), format: usdTick, label: "spent so far" },
    [
      band(points, warp, limit, top),
      timeKept(points, warp, spend),
      limits(spend, warp, limit),
      spentLine(points, warp, expected, spend.deadline_s),
    ],
    points.slice(1).map((point) => ({ x: warp.to(point.elapsed_s), y: point.spent_usd, words: hover(point, limit) })),
    58,
  );
}

function passes(points: SpendPoint[], { budget_usd }: Spending): boolean {
  return budget_usd !== null && points.some((point) => point.kept_usd !== null && sum(point) > budget_usd);
}

function sum(point: SpendPoint): number {
  return point.spent_usd + (point.kept_usd ?? 0);
}

interface Warp {
  to: (seconds: number) => number;
  from: (share: number) => number;
  middle: number;
  end: number;
}

/** Two straight scales where the run is much longer than the search, so that the search can be seen. */
function warped(points: SpendPoint[], spend: Spending, ahead: Finish | null): Warp {
  const last = points.at(-1)!.elapsed_s;
  const end = Math.max(last + (ahead?.seconds ?? 0), spend.deadline_s ?? 0) || 1;
  const middle = searchEnd(points);
  if (!broken(points, spend, ahead)) return { to: (s) => s / end, from: (share) => share * end, middle: end, end };
  return {
    to: (s) =>
      s <= middle ? (SEARCH_SHARE * s) / middle : SEARCH_SHARE + ((1 - SEARCH_SHARE) * (s - middle)) / (end - middle),
    from: (share) =>
      share <= SEARCH_SHARE
        ? (share / SEARCH_SHARE) * middle
        : middle + ((share - SEARCH_SHARE) / (1 - SEARCH_SHARE)) * (end - middle),
    middle,
    end,
  };
}

function broken(points: SpendPoint[], spend: Spending, ahead: Finish | null): boolean {
  const end = Math.max(points.at(-1)!.elapsed_s + (ahead?.seconds ?? 0), spend.deadline_s ?? 0);
  const middle = searchEnd(points);
  return middle > 0 && end > 2.5 * middle;
}

/** When the last probe was settled. */
function searchEnd(points: SpendPoint[]): number {
  const run = points.findIndex((point) => point.purpose === "run");
  return points[run > 0 ? run - 1 : points.length - 1]!.elapsed_s;
}

function band(points: SpendPoint[], warp: Warp, limit: number | null, top: number): Draw {
  return (group, at) => {
    const upper: [number, number][] = [];
    const lower: [number, number][] = [];
    points.forEach((point, i) => {
      if (point.kept_usd === null) return;
      const [from, to] = [at.x(warp.to(point.elapsed_s)), at.x(points[i + 1] ? warp.to(points[i + 1]!.elapsed_s) : 1)];
      const high = at.y(Math.min(sum(point), top));
      upper.push([from, high], [to, high]);
      lower.push([from, at.y(point.spent_usd)], [to, at.y(point.spent_usd)]);
    });
    if (upper.length === 0 || limit === null) return;
    add(group, "path", { d: `${lineOf([...upper, ...lower.reverse()])}Z`, class: "band" });
    add(group, "path", { d: lineOf(upper), class: "band-edge" });
  };
}

/** With a deadline and no budget, the reserve is time. */
function isTimeKept(last: SpendPoint, spend: Spending): boolean {
  return spend.budget_usd === null && spend.deadline_s !== null && last.kept_s !== null;
}

function timeKept(points: SpendPoint[], warp: Warp, spend: Spending): Draw {
  return (group, at) => {
    const last = points.at(-1)!;
    if (!isTimeKept(last, spend)) return;
    const end = last.elapsed_s + (last.kept_s ?? 0);
    const [from, to] = [at.x(warp.to(last.elapsed_s)), at.x(Math.min(1.02, warp.to(end)))];
    add(group, "rect", {
      x: from,
      y: at.top,
      width: Math.max(0, to - from),
      height: at.bottom - at.top,
      class: "band",
    });
  };
}

function limits(spend: Spending, warp: Warp, limit: number | null): Draw {
  return (group, at) => {
    if (limit !== null) {
      add(group, "rect", {
        x: at.left,
        y: at.top,
        width: at.right - at.left,
        height: at.y(limit) - at.top,
        class: "forbidden",
      });
      add(group, "path", { d: `M${at.left},${at.y(limit)}H${at.right}`, class: "limit" });
      add(group, "text", { x: at.left + 6, y: at.y(limit) - 6, class: "label limit-words" }, `budget ${usd(limit)}`);
    }
    if (spend.deadline_s === null) return;
    const x = at.x(warp.to(spend.deadline_s));
    add(group, "path", { d: `M${x},${at.top}V${at.bottom}`, class: "limit" });
    add(
      group,
      "text",
      { x: x - 6, y: at.bottom - 10, "text-anchor": "end", class: "label limit-words" },
      deadlineWords(spend.deadline_s),
    );
  };
}

function deadlineWords(seconds: number): string {
  return `deadline ${duration(seconds)}`;
}

function spentLine(
  points: SpendPoint[],
  warp: Warp,
  expected: { at: number; usd: number } | null,
  deadline: number | null,
): Draw {
  return (group, at) => {
    const corners: [number, number][] = [];
    points.forEach((point, i) => {
      const x = at.x(warp.to(point.elapsed_s));
      // a probe is paid when it ends; the run itself is paid as it goes
      if (i && point.purpose !== "run") corners.push([x, at.y(points[i - 1]!.spent_usd)]);
      corners.push([x, at.y(point.spent_usd)]);
    });
    add(group, "path", { d: lineOf(corners), class: "spent" });
    const [x, y] = corners.at(-1)!;
    const room = new LabelPlacer([at.left, at.top, at.right, at.bottom]);
    room.takeLine(corners);
    if (deadline !== null) {
      const right = at.x(warp.to(deadline)) - 6;
      room.take([right - CHARACTER * deadlineWords(deadline).length - 8, at.bottom - 22, right, at.bottom]);
    }
    add(group, "circle", { cx: x, cy: y, r: 3.6, class: "dot" });
    name(group, room, x, y, usd(points.at(-1)!.spent_usd), at.right);
    if (expected === null) return;
    const [toX, toY] = [at.x(warp.to(expected.at)), at.y(expected.usd)];
    add(group, "path", {
      d: lineOf([
        [x, y],
        [toX, toY],
      ]),
      class: "spent expected",
    });
    add(group, "circle", { cx: toX, cy: toY, r: 3.6, class: "dot open" });
    name(group, room, toX, toY, `${usd(expected.usd)} expected`, at.right);
  };
}

function name(group: SVGGElement, room: LabelPlacer, x: number, y: number, words: string, right: number): void {
  const spot = room.label(x, y, words) ?? {
    x: Math.min(x, right - CHARACTER * words.length),
    y: y - 10,
    anchor: "end" as const,
  };
  add(group, "text", { x: spot.x, y: spot.y, "text-anchor": spot.anchor, class: "label strong" }, words);
}

function hover(point: SpendPoint, limit: number | null): string {
  const lines = [point.label, `${usd(point.spent_usd)} spent after ${duration(point.elapsed_s)}`];
  if (point.kept_usd !== null && limit !== null) lines.push(`${usd(point.kept_usd)} reserve`);
  return lines.filter(Boolean).join("\n");
}
