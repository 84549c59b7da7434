/** Time against cost of everything measured, the Pareto boundary, and the limits, which can be dragged. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { duration, plural, usd } from "../format";
import type { Tradeoff as Doc, TradeoffPoint } from "../types";
import { Figure } from "./Figure";
import { bend, front } from "./tradeoffMarks";
import { Limits } from "./Limits";
import { BOUNDARY, CHOSEN, HOLLOW, KNEE, seriesKeys, seriesOrder } from "./marks";
import { type Axis, type Drawn, type Placed, plotted } from "./plotFrame";
import type { LabelPlacer } from "./labelPlacement";
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
  const best = points.filter((point) => point.frontier).length;
  const knee = bend(points);
  const certified = points.filter(safe).length;
  const ranked = tradeoff.ranking.length > 0;
  const dragged = onBudget !== undefined || onDeadline !== undefined;
  const keys = [
    ...seriesKeys(shown),
    ...(best > 0 ? [BOUNDARY] : []),
    ...(points.some((point) => point.label === chosen) ? [CHOSEN] : []),
    ...(knee !== null ? [KNEE] : []),
    ...(points.every(safe) ? [] : [HOLLOW]),
  ];
  return (
    <Figure
      title={ranked ? "Time against cost, all of the work" : "Time against cost"}
      summary={`${plural(points.length, "configuration")} by total time and total cost; ${best > 0 ? `${best} are best trade-offs; ` : ""}${certified} can be certified within the limits${chosen ? `; ${chosen} is chosen` : ""}.`}
      note={[
        ranked
          ? "The time to the target is unknown: these are totals of all the work, probes included. The job may end sooner."
          : "Totals, probes included.",
        "Bars extend to the worst case.",
        ...(dragged ? ["Drag a limit, or move it by arrow keys, to see what it would change."] : []),
      ].join(" ")}
      keys={keys}
      table={{
        head: ["Configuration", "Time", "Worst time", "Cost", "Worst cost", "Certified", "Boundary"],
        rows: points.map((point) => [
          point.label,
          duration(point.seconds),
          point.worst_seconds === null ? null : duration(point.worst_seconds),
          usd(point.usd),
          point.worst_usd === null ? null : usd(point.worst_usd),
          safe(point) ? "yes" : "no",
          [point.frontier && "yes", point.label === knee && "knee", point.label === chosen && "chosen"]
            .filter(Boolean)
            .join(", ") || (ranked ? null : "no"),
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

/** The scales include every point and the whole range of the limits, so that they do not change while a limit is dragged. */
function scales({ points, ranges }: Doc): Scales {
  const times = [
    ...points.flatMap((point) => [point.seconds, point.worst_seconds ?? 0]),
    ...(ranges.deadline ?? []),
  ].filter((value) => value > 0);
  const costs = [
    ...points.flatMap((point) => [point.usd, point.worst_usd ?? 0]),
    ...(ranges.budget ?? []),
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
  const stands = points.map((point) => ({
    ...point,
    x: point.seconds,
    y: point.usd,
    worst: worst(point),
    full: safe(point),
  }));
  return plotted(
    width,
    tall(width),
    { ...axes.x(wide), grid: true },
    axes.y(wide),
    front(stands, order, chosen, limited(budget, deadline)),
    points.map((point) => ({ x: point.seconds, y: point.usd, words: hover(point, safe(point)) })),
    58,
  );
}

function worst({ worst_seconds, worst_usd }: TradeoffPoint): [number, number] | null {
  return worst_seconds === null || worst_usd === null ? null : [worst_seconds, worst_usd];
}

/** The limits' own words and lines. */
function limited(budget: number | null, deadline: number | null) {
  return (room: LabelPlacer, at: Placed): void => {
    const y = budget === null ? -100 : at.y(budget);
    for (const left of [at.left, at.right - 140]) room.take([left, y - 20, left + 140, y + 2]);
    room.take([at.left, y - 2, at.right, y + 2]);
    const x = deadline === null ? -100 : at.x(deadline);
    room.take([x - 2, at.top, x + 2, at.bottom]);
  };
}

function hover(point: TradeoffPoint, safe: boolean): string {
  return [
    point.label,
    `total ${duration(point.seconds)}, ${usd(point.usd)}`,
    point.worst_seconds === null || point.worst_usd === null
      ? "no worst case is known"
      : `at most ${duration(point.worst_seconds)}, ${usd(point.worst_usd)}`,
    ...(point.measured ? [] : ["not measured: predicted"]),
    ...(safe ? [] : ["cannot be certified"]),
  ].join("\n");
}
