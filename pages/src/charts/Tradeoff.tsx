/** Time against cost of everything measured, what nothing beats, and the limits, which can be dragged. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { duration, plural, usd } from "../format";
import type { Tradeoff as Doc, TradeoffPoint } from "../types";
import { Figure } from "./Figure";
import { Limits } from "./Limits";
import { CHOSEN, colour, HOLLOW, KNEE, outline, seriesKeys, seriesOrder } from "./marks";
import { add, type Axis, type Draw, type Drawn, lineOf, type Placed, plotted } from "./plotted";
import { Room } from "./room";
import { isWide, spread, ticks, timeTick, timeTicks, usdTick } from "./ticks";

interface Props {
  tradeoff: Doc;
  budget: number | null;
  deadline: number | null;
  /** The configuration to ring: the decided one, or that of a what-if. */
  chosen: string | null;
  /** All series in the order of their colours, so that charts beside each other agree. */
  series?: string[];
  onBudget?: (usd: number, digits: number) => void;
  onDeadline?: (seconds: number, digits: number) => void;
}

export function Tradeoff({ tradeoff, budget, deadline, chosen, series, onBudget, onDeadline }: Props): JSX.Element {
  const { points } = tradeoff;
  const order = useMemo(
    () => seriesOrder([...(series ?? []), ...points.map((point) => point.series)]),
    [points, series?.join()],
  );
  const shown = new Map([...order].filter(([name]) => points.some((point) => point.series === name)));
  const axes = useMemo(() => scales(tradeoff), [tradeoff]);
  const safe = (point: TradeoffPoint) =>
    (budget === null || (point.worst_usd ?? Infinity) <= budget) &&
    (deadline === null || (point.worst_seconds ?? Infinity) <= deadline);
  const dragged = onBudget !== undefined || onDeadline !== undefined;
  const keys = [
    ...seriesKeys(shown),
    { mark: <path d="M-8,-6H-2V2H8" class="boundary" />, words: "what nothing beats" },
    ...(points.some((point) => point.label === chosen) ? [CHOSEN] : []),
    ...(points.some((point) => point.knee) ? [KNEE] : []),
    ...(points.every(safe) ? [] : [HOLLOW]),
  ];
  return (
    <Figure
      title="Time against cost"
      summary={`${plural(points.length, "configuration")} by total time and total cost; ${points.filter((point) => point.frontier).length} are beaten by none; ${points.filter(safe).length} can be certified within the limits${chosen ? `; ${chosen} is chosen` : ""}.`}
      note={`Totals, probes included. Bars reach to the worst case.${dragged ? " Drag a limit, or move it by arrow keys, to ask what it would change." : ""}`}
      keys={keys}
      table={{
        head: ["Configuration", "Time", "At most", "Cost", "At most", "Certified", "Boundary"].map((name, i) =>
          i === 4 ? "Cost at most" : name,
        ),
        rows: points.map((point) => [
          point.label,
          duration(point.seconds),
          point.worst_seconds === null ? null : duration(point.worst_seconds),
          usd(point.usd),
          point.worst_usd === null ? null : usd(point.worst_usd),
          safe(point) ? "yes" : "no",
          [point.frontier && "yes", point.knee && "knee", point.label === chosen && "chosen"]
            .filter(Boolean)
            .join(", ") || "no",
        ]),
      }}
      draw={(width) => drawn(width, points, order, axes, safe, chosen, budget, deadline)}
      of={[tradeoff, budget, deadline, chosen]}
      over={(plot, width) => (
        <Limits
          plot={plot}
          width={width}
          height={tall(width)}
          budget={budget}
          deadline={deadline}
          points={points.map((point) => [point.seconds, point.usd])}
          onBudget={onBudget}
          onDeadline={onDeadline}
        />
      )}
    />
  );
}

interface Scales {
  x: (wide: boolean) => Axis;
  y: (wide: boolean) => Axis;
}

/** They hold every point and every limit that can be dragged to, so that nothing moves below a finger. */
function scales({ points, ranges, budget_usd, deadline_s }: Doc): Scales {
  const times = [
    ...points.flatMap((point) => [point.seconds, point.worst_seconds ?? 0]),
    ...(ranges.deadline ?? []),
    ...(deadline_s === null ? [] : [deadline_s]),
  ].filter((value) => value > 0);
  const costs = [
    ...points.flatMap((point) => [point.usd, point.worst_usd ?? 0]),
    ...(ranges.budget ?? []),
    ...(budget_usd === null ? [] : [budget_usd]),
  ].filter((value) => value > 0);
  const [logX, logY] = [isWide(Math.min(...times), Math.max(...times)), isWide(Math.min(...costs), Math.max(...costs))];
  const [across, up] = [spread(times, logX, 0.04), spread(costs, logY, 0.04)];
  return {
    x: (wide) => ({
      domain: across,
      log: logX,
      ticks: timeTicks(across, wide ? 8 : 4, logX),
      format: timeTick,
      label: "total time",
    }),
    y: (wide) => ({
      domain: up,
      log: logY,
      ticks: ticks(up, wide ? 8 : 6, logY),
      format: usdTick,
      label: "total cost",
    }),
  };
}

function tall(width: number): number {
  return width >= 560 ? 430 : 350;
}

function drawn(
  width: number,
  points: TradeoffPoint[],
  order: Map<string, number>,
  axes: Scales,
  safe: (point: TradeoffPoint) => boolean,
  chosen: string | null,
  budget: number | null,
  deadline: number | null,
): Drawn {
  const wide = width >= 560;
  const best = points.filter((point) => point.frontier).sort((a, b) => a.seconds - b.seconds);
  return plotted(
    width,
    tall(width),
    { ...axes.x(wide), grid: true },
    axes.y(wide),
    [
      boundary(best),
      bars(points, order),
      marks(points, order, safe, chosen),
      names(points, best, chosen, budget, deadline),
    ],
    points.map((point) => ({ x: point.seconds, y: point.usd, words: hover(point, safe(point)) })),
    58,
  );
}

/** Down in steps: between two corners nothing was measured. */
function boundary(best: TradeoffPoint[]): Draw {
  return (group, at) => {
    if (best.length > 0) add(group, "path", { d: lineOf(staircase(best, at)), class: "boundary" });
  };
}

function staircase(best: TradeoffPoint[], at: Placed): [number, number][] {
  const corners: [number, number][] = [[at.x(best[0]!.seconds), at.top]];
  for (const point of best)
    corners.push([at.x(point.seconds), corners.at(-1)![1]], [at.x(point.seconds), at.y(point.usd)]);
  return [...corners, [at.right, corners.at(-1)![1]]];
}

/** What takes longer costs more: the worst case lies up and to the right. */
function bars(points: TradeoffPoint[], order: Map<string, number>): Draw {
  return (group, at) => {
    for (const point of points) {
      if (point.worst_seconds === null || point.worst_usd === null) continue;
      const [x, y] = [at.x(point.worst_seconds), at.y(point.worst_usd)];
      add(group, "path", {
        d: `${lineOf([
          [at.x(point.seconds), at.y(point.usd)],
          [x, y],
        ])}m-3,0h6m-3,-3v6`,
        class: "whisker",
        stroke: colour(order.get(point.series)!),
      });
    }
  };
}

function marks(
  points: TradeoffPoint[],
  order: Map<string, number>,
  safe: (point: TradeoffPoint) => boolean,
  chosen: string | null,
): Draw {
  return (group, at) => {
    for (const point of points) {
      const index = order.get(point.series)!;
      const place = `translate(${at.x(point.seconds)} ${at.y(point.usd)})`;
      const full = safe(point);
      add(group, "path", {
        d: outline(index, point.measured ? 5 : 3.4),
        transform: place,
        class: full ? "mark" : "hollow",
        [full ? "fill" : "stroke"]: colour(index),
      });
      if (point.knee) add(group, "rect", { x: -9, y: -9, width: 18, height: 18, transform: place, class: "knee" });
      if (point.label === chosen) add(group, "circle", { r: 11, transform: place, class: "ring" });
    }
  };
}

/** Names on the boundary and of the chosen one, wherever there is room. */
function names(
  points: TradeoffPoint[],
  best: TradeoffPoint[],
  chosen: string | null,
  budget: number | null,
  deadline: number | null,
): Draw {
  return (group, at) => {
    const room = new Room([at.left, at.top, at.right, at.bottom]);
    for (const point of points) {
      const [x, y] = [at.x(point.seconds), at.y(point.usd)];
      room.take([x - 6, y - 6, x + 6, y + 6]);
      room.takeLine([
        [x, y],
        [at.x(point.worst_seconds ?? point.seconds), at.y(point.worst_usd ?? point.usd)],
      ]);
    }
    const y = budget === null ? -100 : at.y(budget);
    for (const left of [at.left, at.right - 140]) room.take([left, y - 20, left + 140, y + 2]); // the limit's own words
    room.take([at.left, y - 2, at.right, y + 2]);
    const x = deadline === null ? -100 : at.x(deadline);
    room.take([x - 2, at.top, x + 2, at.bottom]);
    if (best.length > 0) room.takeLine(staircase(best, at));
    const first = points.filter((point) => point.label === chosen);
    for (const point of [...first, ...best.filter((each) => each.label !== chosen)]) {
      const strong = point.label === chosen;
      const spot = room.label(at.x(point.seconds), at.y(point.usd), point.label, strong ? 14 : 10);
      if (spot)
        add(
          group,
          "text",
          { x: spot.x, y: spot.y, "text-anchor": spot.anchor, class: strong ? "label strong" : "label soft" },
          point.label,
        );
    }
  };
}

function hover(point: TradeoffPoint, safe: boolean): string {
  return [
    point.label,
    `in all ${duration(point.seconds)}, ${usd(point.usd)}`,
    point.worst_seconds === null || point.worst_usd === null
      ? "no worst case is known"
      : `at most ${duration(point.worst_seconds)}, ${usd(point.worst_usd)}`,
    ...(point.measured ? [] : ["not measured: forecast"]),
    ...(safe ? [] : ["cannot be certified"]),
  ].join("\n");
}
