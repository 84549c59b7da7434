/** What machines used while the job ran: small charts on one axis of time. */

import type { JSX } from "preact";
import { Figure, type Row } from "../../../charts/Figure";
import { colour, type Key } from "../../../charts/marks";
import { add, type Draw, type Drawn, lineOf, plotted } from "../../../charts/plotFrame";
import { ticks, timeTick, timeTicks } from "../../../charts/ticks";
import { duration, significant } from "../../../format";
import type { MachineUsage, UsagePoint } from "../../../types";

const HEIGHT = 150;
/** Of more machines than this only the lines are drawn, without names. */
const NAMED = 8;

interface Quantity {
  title: string;
  unit: string;
  names: string[];
  /** The most that can be used, of each. */
  limits: number[];
  value: (point: UsagePoint, i: number) => number | null;
}

/** `at`: the time of the line that one is at in the log. */
export function Usage({ of, at }: { of: MachineUsage; at: number | null }): JSX.Element {
  if (of.machines.length === 0) {
    return <p class="hint">What machines do is measured on this machine's own nodes (local); not measured here.</p>;
  }
  return (
    <section class="usage" aria-label="What the machines did">
      {of.sentence && <p class="usage-words">{of.sentence}</p>}
      <div class="usage-charts">
        {quantities(of).map((each) => (
          <Chart key={each.title} of={each} points={of.points} at={at} />
        ))}
      </div>
    </section>
  );
}

function quantities({ machines, gpus, points }: MachineUsage): Quantity[] {
  const names = machines.map((machine) => machine.name);
  const found: Quantity[] = [
    {
      title: "CPU",
      unit: "cores",
      names,
      limits: machines.map((machine) => machine.cores),
      value: (point, i) => point.cpu[i] ?? null,
    },
    {
      title: "Memory",
      unit: "GiB",
      names,
      limits: machines.map((machine) => machine.memory_gib),
      value: (point, i) => point.peak[i] ?? null,
    },
  ];
  const cards = gpus.map((gpu, i) => (gpus.length > 1 ? `GPU ${i}` : gpu.name));
  if (points.some((point) => point.gpu.some((value) => value !== null)))
    found.push({
      title: "GPU busy",
      unit: "%",
      names: cards,
      limits: gpus.map(() => 100),
      value: (point, i) => point.gpu[i] ?? null,
    });
  if (gpus.length > 0)
    found.push({
      title: "GPU memory",
      unit: "GiB",
      names: cards,
      limits: gpus.map((gpu) => gpu.memory_gib),
      value: (point, i) => point.gpu_memory[i] ?? null,
    });
  return found;
}

function Chart({ of, points, at }: { of: Quantity; points: UsagePoint[]; at: number | null }): JSX.Element {
  const most = of.names.map((_, i) => Math.max(0, ...points.map((point) => of.value(point, i) ?? 0)));
  const peak = Math.max(...most);
  const limit = of.limits[most.indexOf(peak)] ?? 0;
  const keys: Key[] =
    of.names.length < 2 || of.names.length > NAMED
      ? []
      : of.names.map((words, i) => ({ mark: <path d="M-8,0H8" stroke={colour(i)} stroke-width="2.4" />, words }));
  return (
    <Figure
      title={of.title}
      summary={`At most ${significant(peak)} of ${significant(limit)} ${of.unit}.`}
      keys={keys}
      table={{ head: ["Time", ...of.names.map((name) => `${name}, ${of.unit}`)], rows: rows(of, points) }}
      draw={(width) => drawn(width, of, points, peak, limit, at)}
      of={[of.title, points, at]}
    />
  );
}

function rows(of: Quantity, points: UsagePoint[]): Row[] {
  return points.map((point) => [
    duration(point.t),
    ...of.names.map((_, i) => {
      const value = of.value(point, i);
      return value === null ? null : significant(value);
    }),
  ]);
}

function drawn(width: number, of: Quantity, points: UsagePoint[], peak: number, limit: number, at: number | null): Drawn {
  const end = Math.max(1, points.at(-1)?.t ?? 1);
  const top = peak > limit / 4 ? Math.max(peak, limit) : peak * 1.3 || 1;
  const up: [number, number] = [0, top * 1.04];
  return plotted(
    width,
    HEIGHT,
    { domain: [0, end], ticks: timeTicks([0, end], width >= 420 ? 6 : 4), format: timeTick, label: "" },
    { domain: up, ticks: ticks(up, 3), format: (value) => significant(value), label: of.unit },
    [limitLine(limit, top), cursor(at), ...of.names.map((_, i) => curve(of, points, i))],
    points.flatMap((point) => {
      const values = of.names.map((_, i) => of.value(point, i)).filter((value) => value !== null);
      const most = Math.max(...values);
      return values.length === 0
        ? []
        : [{ x: point.t, y: most, words: `${duration(point.t)}: ${significant(most)} ${of.unit}` }];
    }),
    44,
  );
}

function limitLine(limit: number, top: number): Draw {
  return (group, at) => {
    if (limit <= top && limit > 0) add(group, "path", { d: `M${at.left},${at.y(limit)}H${at.right}`, class: "goal" });
  };
}

function cursor(t: number | null): Draw {
  return (group, at) => {
    if (t !== null) add(group, "path", { d: `M${at.x(t)},${at.top}V${at.bottom}`, class: "log-here" });
  };
}

function curve(of: Quantity, points: UsagePoint[], i: number): Draw {
  return (group, at) => {
    const known = points.flatMap((point): [number, number][] => {
      const value = of.value(point, i);
      return value === null ? [] : [[at.x(point.t), at.y(value)]];
    });
    add(group, "path", { d: lineOf(known), fill: "none", stroke: colour(i), "stroke-width": 1.6 });
  };
}
