/** Trials as lines: what was drawn for each, then its loss after every stage. A line that ends was stopped. */

import type { JSX } from "preact";
import { plural, significant } from "../format";
import type { TunedTrial } from "../types";
import { Figure } from "./Figure";
import { add, type Draw, type Drawn, lineOf, type Placed, plotted } from "./plotFrame";
import { isWide, spread } from "./ticks";

interface Props {
  trials: TunedTrial[];
  /** The ends of each hyperparameter. */
  space: Record<string, number[]>;
}

/** One vertical axis, by its own scale. */
export interface Coordinate {
  name: string;
  short: string;
  ends: [number, number];
  log: boolean;
  read: (trial: TunedTrial) => number | null;
}

const BEST = { mark: <path d="M-8,0H8" class="trial best" />, words: "the best" };
const ON = { mark: <path d="M-8,0H8" class="trial" />, words: "goes on" };
const STOPPED = { mark: <path d="M-8,0H8" class="trial stopped" />, words: "stopped" };
const MOST_STAGES = 6;

export function Parallel({ trials, space }: Props): JSX.Element {
  const axes = coordinates(trials, space);
  const stages = Math.max(...trials.map((trial) => trial.losses.length));
  const best = trials.find((trial) => trial.best);
  const halted = trials.filter((trial) => trial.stopped).length;
  const names = Object.keys(space);
  return (
    <Figure
      title="Trials: hyperparameters and loss"
      summary={`${plural(trials.length, "trial")} in ${plural(stages, "stage")}; ${halted} were stopped.${best ? ` The best is trial ${best.trial}, with a loss of ${lossWords(best.losses.at(-1))}.` : ""}`}
      note="A line for each trial: what was drawn for it, then its loss after each stage. A line that ends early was stopped there, or diverged."
      keys={[
        ...(best ? [BEST] : []),
        ...(trials.some((trial) => !trial.stopped && !trial.best) ? [ON] : []),
        ...(halted > 0 ? [STOPPED] : []),
      ]}
      table={{
        head: ["Trial", ...names, ...Array.from({ length: stages }, (_, i) => `Loss ${i + 1}`), "Outcome"],
        rows: trials.map((trial) => [
          String(trial.trial),
          ...names.map((name) => significant(trial.hyperparameters[name] ?? 0, 4)),
          ...Array.from({ length: stages }, (_, i) => (i < trial.losses.length ? lossWords(trial.losses[i]) : null)),
          trial.best ? "best" : trial.stopped ? `stopped after stage ${trial.losses.length}` : "goes on",
        ]),
      }}
      draw={(width) => drawn(width, trials, axes)}
      of={[trials, space]}
    />
  );
}

function lossWords(loss: number | null | undefined): string {
  return loss === null || loss === undefined ? "diverged" : significant(loss, 4);
}

/** An axis for each hyperparameter and, all on one scale, one for the loss after each stage; of many stages some. */
export function coordinates(trials: TunedTrial[], space: Record<string, number[]>): Coordinate[] {
  const drawn = Object.entries(space).map(([name, ends]): Coordinate => {
    const [low, high] = [ends[0]!, ends[1]!];
    const read = (trial: TunedTrial) => trial.hyperparameters[name] ?? null;
    return { name: name.replaceAll("_", " "), short: name.replaceAll("_", " "), ends: [low, high], log: low > 0, read };
  });
  const losses = trials.flatMap((trial) => trial.losses.filter((loss) => loss !== null));
  if (losses.length === 0) return drawn;
  const log = Math.min(...losses) > 0 && isWide(Math.min(...losses), Math.max(...losses));
  const ends = spread(losses, log, 0.02);
  const count = Math.max(...trials.map((trial) => trial.losses.length));
  const shown = Math.min(count, MOST_STAGES);
  const stages = Array.from({ length: shown }, (_, i) => Math.round((i * (count - 1)) / Math.max(1, shown - 1)));
  return [
    ...drawn,
    ...stages.map((stage) => ({
      name: `loss, stage ${stage + 1}`,
      short: `loss ${stage + 1}`,
      ends,
      log,
      read: (trial: TunedTrial) => trial.losses[stage] ?? null,
    })),
  ];
}

/** How far up an axis a value stands, from 0 to 1. */
export function share({ ends: [low, high], log }: Coordinate, value: number): number {
  const at = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return Number.isFinite(at) ? Math.min(1, Math.max(0, at)) : 0.5;
}

function drawn(width: number, trials: TunedTrial[], axes: Coordinate[]): Drawn {
  const wide = width >= 560;
  return plotted(
    width,
    wide ? 360 : 300,
    {
      domain: [0, Math.max(1, axes.length - 1)],
      ticks: axes.map((_, i) => i),
      format: (i) => (wide ? axes[i]?.name : axes[i]?.short.replace("learning rate", "rate")) ?? "",
      label: "",
      inset: [wide ? 50 : 26, wide ? 50 : 22],
    },
    { domain: [0, 1], ticks: [], format: String, label: "", inset: [24, 10] },
    [lines(trials, axes)],
    trials.slice(0, 60).flatMap((trial) =>
      axes.flatMap((axis, i) => {
        const value = axis.read(trial);
        return value === null
          ? []
          : [{ x: i, y: share(axis, value), words: `trial ${trial.trial}\n${axis.name} ${significant(value, 4)}` }];
      }),
    ),
    8,
  );
}

/** The stopped ones first and the best last, so that it lies on top. */
function lines(trials: TunedTrial[], axes: Coordinate[]): Draw {
  return (group, at) => {
    axes.forEach((axis, i) => {
      add(group, "path", { d: `M${at.x(i)},${at.y(0)}V${at.y(1)}`, stroke: "var(--axis)" });
      ends(group, at, axis, i);
    });
    const rank = (trial: TunedTrial): number => (trial.best ? 2 : trial.stopped ? 0 : 1);
    for (const trial of [...trials].sort((a, b) => rank(a) - rank(b))) {
      const points: [number, number][] = [];
      axes.forEach((axis, i) => {
        const value = axis.read(trial);
        if (value !== null) points.push([at.x(i), at.y(share(axis, value))]);
      });
      const look = trial.best ? "trial best" : trial.stopped ? "trial stopped" : "trial";
      add(group, "path", { d: lineOf(points), class: look });
      const [x, y] = points.at(-1) ?? [0, 0];
      if (points.length > 0) add(group, "circle", { cx: x, cy: y, r: trial.best ? 4 : 2.2, class: `${look} end` });
    }
  };
}

/** The values at both ends; those of the loss once, for all its axes have one scale. */
function ends(group: SVGGElement, at: Placed, axis: Coordinate, i: number): void {
  if (axis.short.startsWith("loss ") && axis.short !== "loss 1") return;
  for (const [end, y] of [
    [axis.ends[1], at.y(1) - 6],
    [axis.ends[0], at.y(0) + 13],
  ] as const)
    add(group, "text", { x: at.x(i), y, "text-anchor": "middle", class: "label soft" }, significant(end, 3));
}
