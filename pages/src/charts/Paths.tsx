/** The best so far of several runs, over the money that each had spent by then. */

import type { JSX } from "preact";
import { duration, rate as rateWords, significant, usd } from "../format";
import type { Comparison } from "../types";
import { Figure } from "./Figure";
import { colour, outline, seriesKeys } from "./marks";
import { add, type Draw, type Drawn, lineOf, plotted } from "./plotFrame";
import { isWide, rateTick, spread, ticks, timeTicks, usdTick } from "./ticks";

type Run = Comparison["runs"][number];
type By = NonNullable<Comparison["paths"]>;

const WORDS: Record<By["unit"], (value: number) => string> = {
  s: duration,
  usd,
  rate: rateWords,
  loss: (value) => significant(value, 4),
};
const TICK: Record<By["unit"], (value: number) => string> = {
  s: duration,
  usd: usdTick,
  rate: rateTick,
  loss: (value) => significant(value),
};

/** `runs`: all that are compared, so that each keeps its colour; those without a path are not drawn. */
export function Paths({ runs, by }: { runs: Run[]; by: By }): JSX.Element | null {
  const drawnRuns = runs.filter((run) => run.path.length > 0);
  if (drawnRuns.length === 0) return null;
  const says = WORDS[by.unit];
  const names = new Map(runs.flatMap((run, i): [string, number][] => (run.path.length > 0 ? [[run.summary.run, i]] : [])));
  return (
    <Figure
      title={`Best so far: ${by.name}`}
      summary={`${drawnRuns.map((run) => `${run.summary.run} came to ${says(run.path.at(-1)!.value)} after ${usd(run.path.at(-1)!.usd)}`).join("; ")}.`}
      note={`Each step is better than all before it; ${by.lower_is_better ? "lower" : "higher"} is better.${by.unit === "s" || by.unit === "usd" ? " Only what can be certified counts." : ""}`}
      keys={seriesKeys(names)}
      table={{
        head: ["Run", "Spent", by.name, "By"],
        rows: drawnRuns.flatMap((run) =>
          run.path.map((point) => [run.summary.run, usd(point.usd), says(point.value), point.label]),
        ),
      }}
      draw={(width) => drawn(width, runs, by)}
      of={[runs, by]}
    />
  );
}

function drawn(width: number, runs: Run[], by: By): Drawn {
  const wide = width >= 560;
  const values = runs.flatMap((run) => run.path.map(({ value }) => value));
  const log = isWide(Math.min(...values), Math.max(...values));
  const up = spread(values, log, 0.12);
  const most = 1.04 * Math.max(...runs.filter((run) => run.path.length > 0).map((run) => ends(run, by))) || 1;
  return plotted(
    width,
    wide ? 300 : 260,
    { domain: [0, most], ticks: ticks([0, most], wide ? 7 : 4), format: usdTick, label: "spent so far" },
    {
      domain: up,
      log,
      ticks: by.unit === "s" ? timeTicks(up, 5, log) : ticks(up, 5, log),
      format: TICK[by.unit],
      label: by.name,
      inset: [6, 6],
    },
    [steps(runs, by)],
    runs.flatMap((run) =>
      run.path.map((point) => ({
        x: point.usd,
        y: point.value,
        words: `${run.summary.run}: ${point.label}\n${WORDS[by.unit](point.value)} after ${usd(point.usd)}`,
      })),
    ),
    62,
  );
}

/** How far its line goes on: to the end of its search, or of a training on functions. */
function ends(run: Run, by: By): number {
  return Math.max(run.path.at(-1)?.usd ?? 0, by.unit === "loss" ? run.summary.spent_usd : run.probing_usd);
}

/** Where lines are the same, the later one is thinner and lies on top, so that all of them are seen. */
function steps(runs: Run[], by: By): Draw {
  return (group, at) => {
    runs.forEach((run, index) => {
      if (run.path.length === 0) return;
      const below = 1.7 * runs.slice(index + 1).filter((other) => other.path.length > 0).length;
      const corners = run.path.flatMap((point, i): [number, number][] => {
        const to = run.path[i + 1]?.usd ?? ends(run, by);
        return [point.usd, to].map((spent) => [at.x(spent), at.y(point.value)]);
      });
      add(group, "path", {
        d: lineOf(corners),
        class: "best-line",
        stroke: colour(index),
        "stroke-width": 2 + below,
      });
      for (const point of run.path)
        add(group, "path", {
          d: outline(index, 4.4 + below),
          transform: `translate(${at.x(point.usd)} ${at.y(point.value)})`,
          class: "mark",
          fill: colour(index),
        });
    });
  };
}
