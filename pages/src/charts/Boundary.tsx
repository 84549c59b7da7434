/** On functions: the Pareto boundary of allocations by time and cost of one epoch. */

import type { JSX } from "preact";
import { duration, usd } from "../format";
import type { Functions } from "../types";
import { Figure } from "./Figure";
import { CHOSEN, colour, outline, seriesKeys, seriesOrder } from "./marks";
import { add, type Draw, type Drawn, lineOf, plotted } from "./plotFrame";
import { LabelPlacer } from "./labelPlacement";
import { isWide, spread, ticks, timeTick, timeTicks, usdTick } from "./ticks";

type Point = Functions["boundary"][number];

export function Boundary({ boundary: points }: { boundary: Point[] }): JSX.Element {
  const order = seriesOrder(points.map((point) => point.storage));
  return (
    <Figure
      title="Time and cost of an epoch"
      summary={`${points.length} best trade-offs, from ${duration(points[0]!.seconds)} and ${usd(points[0]!.usd)} to ${duration(points.at(-1)!.seconds)} and ${usd(points.at(-1)!.usd)} for an epoch.`}
      note="Each mark is a best trade-off: no other allocation is both faster and cheaper for one epoch."
      keys={[
        ...seriesKeys(order),
        ...(points.some((point) => point.used) ? [{ ...CHOSEN, words: "in the plan" }] : []),
      ]}
      table={{
        head: ["Allocation", "Time", "Cost", "Mark"],
        rows: points.map((point, i) => [
          point.label,
          duration(point.seconds),
          usd(point.usd),
          [
            i === 0 && "fastest",
            point.knee && "knee",
            i === points.length - 1 && "cheapest",
            point.used && "in the plan",
          ]
            .filter(Boolean)
            .join(", ") || null,
        ]),
      }}
      draw={(width) => drawn(width, points, order)}
      of={[points]}
    />
  );
}

function drawn(width: number, points: Point[], order: Map<string, number>): Drawn {
  const wide = width >= 560;
  const [times, costs] = [points.map((point) => point.seconds), points.map((point) => point.usd)];
  const [logX, logY] = [isWide(Math.min(...times), Math.max(...times)), isWide(Math.min(...costs), Math.max(...costs))];
  const [across, up] = [spread(times, logX, 0.08), spread(costs, logY, 0.1)];
  return plotted(
    width,
    wide ? 320 : 280,
    {
      domain: across,
      log: logX,
      ticks: timeTicks(across, wide ? 7 : 4, logX),
      format: timeTick,
      label: "time of an epoch",
      grid: true,
    },
    { domain: up, log: logY, ticks: ticks(up, 5, logY), format: usdTick, label: "cost of an epoch" },
    [marks(points, order)],
    points.map((point) => ({
      x: point.seconds,
      y: point.usd,
      words: `${point.label}\n${duration(point.seconds)}, ${usd(point.usd)}`,
    })),
    66,
  );
}

function marks(points: Point[], order: Map<string, number>): Draw {
  return (group, at) => {
    const corners = points.map((point): [number, number] => [at.x(point.seconds), at.y(point.usd)]);
    add(group, "path", { d: lineOf(corners), class: "boundary" });
    const room = new LabelPlacer([at.left, at.top, at.right, at.bottom]);
    room.takeLine(corners);
    points.forEach((point, i) => {
      const [x, y] = corners[i]!;
      const index = order.get(point.storage)!;
      add(group, "path", {
        d: outline(index, 4.4),
        transform: `translate(${x} ${y})`,
        class: "mark",
        fill: colour(index),
      });
      if (!point.used) return;
      add(group, "circle", { cx: x, cy: y, r: 10, class: "ring" });
      const spot = room.label(x, y, point.label, 14);
      if (spot)
        add(group, "text", { x: spot.x, y: spot.y, "text-anchor": spot.anchor, class: "label strong" }, point.label);
    });
  };
}
