/** Every probe by number of nodes and rate, or total cost; failures along the bottom. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { duration, plural, rate as rateWords, usd } from "../format";
import type { Refusal, Step, UnderWay } from "../types";
import { below, CROWD, ROW, type Row, rowsBelow, sized } from "./failedProbes";
import { Figure } from "./Figure";
import { CHOSEN, colour, FAILED, outline, REFUSED, seriesKeys, seriesOrder } from "./marks";
import { add, type Draw, type Drawn, lineOf, plotted } from "./plotFrame";
import { CHARACTER, LabelPlacer } from "./labelPlacement";
import { Segments } from "./Segments";
import { isWide, rateTick, spread, ticks, usdTick } from "./ticks";

type Reading = "rate" | "cost";

interface Props {
  path: Step[];
  refusals?: Refusal[];
  underWay?: UnderWay[];
  driven: boolean;
  unit: string;
}

interface Placed {
  step: Step;
  x: number;
  y: number;
  side: -1 | 0 | 1;
}

export function SearchPath({ path, refusals = [], underWay = [], driven, unit }: Props): JSX.Element {
  const [reading, setReading] = useState<Reading>("rate");
  const order = seriesOrder(path.map((step) => step.series));
  const failed = path.filter((step) => step.rate === null);
  const refused = sized(refusals);
  const going = sized(
    underWay
      .filter((each) => each.purpose === "probe")
      .map(({ configuration, because }) => ({ label: configuration, because })),
  );
  const keys = [
    ...seriesKeys(order),
    ...(path.some((step) => step.chosen) ? [CHOSEN] : []),
    ...(failed.length > 0 ? [FAILED] : []),
    ...(refused.length > 0 ? [REFUSED] : []),
  ];
  const priced = path.some((step) => step.finish !== null);
  return (
    <Figure
      title="Search path"
      summary={said(path, failed)}
      note={
        path.length > CROWD
          ? "Bars are confidence intervals. With so many probes only the chosen one has its number; point at a mark for the others."
          : "Numbers are the order of the probes; bars are confidence intervals."
      }
      keys={keys}
      table={table(path, unit)}
      draw={(width) => drawn(width, path, order, reading, unit, rowsBelow(path, refused, going, driven))}
      of={[path, reading, refusals, underWay, driven]}
      switches={
        priced ? (
          <Segments
            label="Vertical axis"
            of={["rate", "cost"] as const}
            chosen={reading}
            onChoose={setReading}
            name={(each) => (each === "rate" ? unit : "total cost")}
          />
        ) : null
      }
    />
  );
}

/** The value and both ends of its interval. Cost has only an upper end: the worst case. */
function read(step: Step, reading: Reading): [number, number, number] | null {
  if (reading === "cost") return step.finish && [step.finish.usd, step.finish.usd, step.finish.worst_usd];
  return step.rate === null ? null : [step.rate, step.low ?? step.rate, step.high ?? step.rate];
}

function drawn(
  width: number,
  path: Step[],
  order: Map<string, number>,
  reading: Reading,
  unit: string,
  rows: Row[],
): Drawn {
  const wide = width >= 560;
  const measured = path.filter((step) => read(step, reading) !== null);
  const counts = [
    ...new Set([...path.map((step) => step.nodes ?? 1), ...rows.flatMap((row) => row.at.map((each) => each.nodes))]),
  ].sort((a, b) => a - b);
  const [low, high] = [counts[0] ?? 1, counts.at(-1) ?? 1];
  const log = isWide(low, high);
  const strip = rows.length * ROW;
  const up = spread(
    measured.flatMap((step) => read(step, reading)!),
    true,
    0.03,
  );
  const inset = Math.min(60, 0.09 * width);
  const across: [number, number] = low === high ? [low - 1, high + 1] : [low, high];
  const height = (measured.length > 0 ? (wide ? 380 : 310) : 76) + strip;
  return plotted(
    width,
    height,
    {
      domain: across,
      log: log && low !== high,
      ticks: spaced(counts, across, log, width - 2 * inset - 66),
      format: String,
      label: "nodes",
      inset: [inset, inset + 14],
    },
    {
      domain: up,
      log: true,
      ticks: measured.length > 0 ? ticks(up, wide ? 7 : 5, true) : [],
      format: reading === "rate" ? rateTick : usdTick,
      label: measured.length > 0 ? (reading === "rate" ? unit : "total cost of the job") : "",
      inset: [strip + 12, 10],
    },
    [points(measured, order, reading), below(rows, order)],
    measured
      .filter((step) => step.nodes !== null)
      .map((step) => ({ x: step.nodes!, y: read(step, reading)![0], words: hover(step, unit) })),
  );
}

/** The marks with their intervals, as near to their number of nodes as others leave room for. */
function points(measured: Step[], order: Map<string, number>, reading: Reading): Draw {
  return (group, at) => {
    const room = new LabelPlacer([at.left - 4, at.top - 10, at.right, at.bottom]);
    const crowded = measured.length > CROWD;
    const first = [...measured].sort(
      (a, b) => Number(b.chosen) - Number(a.chosen) || read(b, reading)![0] - read(a, reading)![0],
    );
    const placed = first.map((step): Placed => {
      const [x, y] = [at.x(step.nodes ?? 1), at.y(read(step, reading)![0])];
      return crowded ? { step, x, y, side: step.chosen ? 1 : 0 } : place(step, x, y, room);
    });
    for (const [name, index] of order) {
      const mine = placed.filter((each) => each.step.series === name).sort((a, b) => a.x - b.x);
      const corners = mine.map(({ x, y }): [number, number] => [x, y]);
      if (corners.length > 1) add(group, "path", { d: lineOf(corners), class: "thread", stroke: colour(index) });
      room.takeLine(corners);
    }
    for (const { step, x, y, side } of placed) {
      const index = order.get(step.series)!;
      const [, low, high] = read(step, reading)!;
      const [bottom, top] = [at.y(low), at.y(high)];
      room.take([x - 3, top, x + 3, bottom]);
      const whisker = crowded ? `M${x},${top}V${bottom}` : `M${x - 3},${top}h6m-3,0V${bottom}m-3,0h6`;
      add(group, "path", { d: whisker, class: "whisker", stroke: colour(index) });
      add(group, "path", { d: outline(index, crowded ? 3.2 : 5), transform: `translate(${x} ${y})`, class: "mark", fill: colour(index) });
      if (step.chosen) add(group, "circle", { cx: x, cy: y, r: 10, class: "ring" });
      if (side)
        add(
          group,
          "text",
          {
            x: x + side * (step.chosen ? 14 : 8),
            y: y + 4,
            "text-anchor": side > 0 ? "start" : "end",
            class: step.chosen ? "label strong" : "label",
          },
          String(step.number),
        );
    }
    for (const name of order.keys()) {
      const mine = placed.filter((each) => each.step.series === name);
      const end = mine.sort((a, b) => b.x - a.x)[0];
      const spot =
        end && room.label(end.x, end.y, name, (end.step.chosen ? 22 : 16) + CHARACTER * String(end.step.number).length);
      if (spot) add(group, "text", { x: spot.x, y: spot.y, "text-anchor": spot.anchor, class: "label soft" }, name);
    }
  };
}

function place(step: Step, atX: number, atY: number, room: LabelPlacer): Placed {
  const half = step.chosen ? 11 : 6;
  const number = CHARACTER * String(step.number).length + 3;
  const shifts = Array.from({ length: 25 }, (_, i) => 4 * (i % 2 ? (i + 1) / 2 : -i / 2));
  for (const sides of [[1, -1], [0]] as (-1 | 0 | 1)[][]) {
    for (const shift of shifts) {
      for (const side of sides) {
        const left = atX + shift - half - (side < 0 ? number : 0);
        const box: [number, number, number, number] = [
          left,
          atY - half,
          left + 2 * half + (side ? number : 0),
          atY + half,
        ];
        if (!room.free(box)) continue;
        room.take(box);
        return { step, x: atX + shift, y: atY, side };
      }
    }
  }
  return { step, x: atX, y: atY, side: 0 };
}

/** The numbers of nodes that were tried, as many as can be read. */
function spaced(counts: number[], [low, high]: [number, number], log: boolean, width: number): number[] {
  const share = (count: number) => (log ? Math.log(count / low) / Math.log(high / low) : (count - low) / (high - low));
  const kept: number[] = [];
  for (const count of counts)
    if (kept.length === 0 || (share(count) - share(kept.at(-1)!)) * width >= 22) kept.push(count);
  return kept;
}

function hover(step: Step, unit: string): string {
  const off =
    step.rate && step.low !== null && step.high !== null
      ? ` ± ${((50 * (step.high - step.low)) / step.rate).toFixed(1)} %`
      : "";
  const lines = [
    `${step.number}: ${step.label}`,
    step.rate === null ? step.outcome : `${rateWords(step.rate)} ${unit}${off}`,
  ];
  if (step.finish) lines.push(`to finish: ${duration(step.finish.seconds)}, ${usd(step.finish.usd)}`);
  if (step.certified === false) lines.push("cannot be certified");
  lines.push(`probe: ${duration(step.seconds)}, ${usd(step.usd)}`);
  return lines.join("\n");
}

function said(path: Step[], failed: Step[]): string {
  const chosen = path.find((step) => step.chosen);
  const parts = [`${plural(path.length, "probe")} by number of nodes and measured rate`];
  if (failed.length > 0) parts.push(`${failed.length} of them failed`);
  if (chosen) parts.push(`${chosen.label} was chosen`);
  return `${parts.join("; ")}.`;
}

function table(path: Step[], unit: string): { head: string[]; rows: (string | null)[][] } {
  return {
    head: ["Configuration", "Probe", "Nodes", unit, "Low", "High", "Total cost", "Outcome"],
    rows: path.map((step) => [
      step.label,
      String(step.number),
      step.nodes === null ? null : String(step.nodes),
      step.rate === null ? null : rateWords(step.rate),
      step.low === null ? null : rateWords(step.low),
      step.high === null ? null : rateWords(step.high),
      step.finish && usd(step.finish.usd),
      step.chosen ? "chosen" : step.outcome.replaceAll("_", " "),
    ]),
  };
}
