/** What each trial of a server came to for the goal, and the best so far of those that keep all that is asked. */

import type { JSX } from "preact";
import { rate as rateWords } from "../format";
import type { Serving, Trial } from "../types";
import { Figure } from "./Figure";
import { CHOSEN, crossed, FAILED, HOLLOW, type Key } from "./marks";
import { add, type Draw, type Drawn, lineOf, plotted } from "./plotFrame";
import { isWide, rateTick, spread, ticks } from "./ticks";

const BEST: Key = { mark: <path d="M-8,5H-2V-1H4V-5H8" class="boundary" />, words: "best so far" };

export interface Point {
  trial: Trial;
  value: number;
}

/** `goal`: for the fastest the rate counts, for every other goal the rate for the money. */
export function BestSoFar({ serving, goal }: { serving: Serving; goal: string }): JSX.Element {
  const { trials, unit } = serving;
  const name = goal === "fastest" ? unit : `${unit} for $1 an hour`;
  const points = trials.flatMap((trial) => {
    const value = trial.rate === null ? null : goal === "fastest" ? trial.rate : trial.rate / (trial.usd_per_hour || 1);
    return value === null ? [] : [{ trial, value }];
  });
  const failed = trials.filter((trial) => trial.rate === null);
  const steps = best(points);
  const chosen = points.find(({ trial }) => trial.chosen);
  const surer = chosen && steps.length > 0 && chosen.value < steps.at(-1)!.value;
  return (
    <Figure
      title="Best so far"
      summary={`${steps.length > 0 ? `The best of ${trials.length} trials: ${rateWords(steps.at(-1)!.value)} ${name}` : "No trial keeps all that is asked"}${chosen ? `; trial ${chosen.trial.number} is chosen` : ""}.`}
      note={[
        "What each trial came to; the line is the best so far of those that keep all that is asked.",
        ...(surer ? ["The choice lies lower: what is certified goes before what only keeps it as measured."] : []),
      ].join(" ")}
      keys={[
        ...(steps.length > 0 ? [BEST] : []),
        ...(chosen ? [CHOSEN] : []),
        ...(points.some(({ trial }) => !trial.keeps) ? [{ ...HOLLOW, words: "breaks what is asked" }] : []),
        ...(failed.length > 0 ? [FAILED] : []),
      ]}
      table={{
        head: ["Trial", name, "Best so far"],
        rows: points.map(({ trial, value }) => {
          const at = steps.findLast((step) => step.trial.number <= trial.number);
          return [`${trial.number}: ${trial.label}`, rateWords(value), at ? rateWords(at.value) : null];
        }),
      }}
      draw={(width) => drawn(width, points, failed, steps, trials.length, name)}
      of={[serving, goal]}
    />
  );
}

/** The trials that were better than all before them and keep what is asked. */
export function best(points: Point[]): Point[] {
  const found: Point[] = [];
  for (const point of points) if (point.trial.keeps && point.value > (found.at(-1)?.value ?? -1)) found.push(point);
  return found;
}

function drawn(width: number, points: Point[], failed: Trial[], steps: Point[], last: number, name: string): Drawn {
  const values = points.map(({ value }) => value);
  const log = isWide(Math.min(...values), Math.max(...values));
  const up = spread(values, log, 0.1);
  const across: [number, number] = [0.5, last + 0.5];
  return plotted(
    width,
    width >= 560 ? 290 : 250,
    {
      domain: across,
      ticks: ticks(across, width >= 560 ? 10 : 5).filter((n) => Number.isInteger(n) && n > 0),
      format: String,
      label: "trial",
    },
    { domain: up, log, ticks: ticks(up, 5, log), format: rateTick, label: name, inset: [failed.length > 0 ? 24 : 6, 6] },
    [stepped(steps, last), marks(points, failed)],
    points.map(({ trial, value }) => ({
      x: trial.number,
      y: value,
      words: `${trial.number}: ${trial.label}\n${rateWords(value)} ${name}`,
    })),
  );
}

function stepped(steps: Point[], last: number): Draw {
  return (group, at) => {
    if (steps.length === 0) return;
    const corners = steps.flatMap(({ trial, value }, i): [number, number][] => {
      const end = steps[i + 1]?.trial.number ?? last + 0.5;
      return [trial.number, end].map((number) => [at.x(number), at.y(value)]);
    });
    add(group, "path", { d: lineOf(corners), class: "boundary" });
  };
}

function marks(points: Point[], failed: Trial[]): Draw {
  return (group, at) => {
    for (const { trial, value } of points) {
      const place = { cx: at.x(trial.number), cy: at.y(value) };
      add(group, "circle", { ...place, r: 4.2, class: trial.keeps ? "dot" : "dot open" });
      if (trial.chosen) add(group, "circle", { ...place, r: 9, class: "ring" });
    }
    for (const trial of failed)
      add(group, "path", {
        d: crossed(),
        transform: `translate(${at.x(trial.number)} ${at.bottom - 12})`,
        class: "cross",
        stroke: "var(--soft)",
      });
  };
}
