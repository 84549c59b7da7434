/** What would be clearly better than the decision and is expected to keep the limits, but is not certain to. */

import type { JSX } from "preact";
import { duration, usd } from "../../format";
import type { TradeoffPoint } from "../../types";

/** Less is not worth a search. */
const CLEARLY = 0.95;

interface Asked {
  goal: string;
  budget: number | null;
  deadline: number | null;
  /** What was decided; null where nothing can be. */
  label: string | null;
}

/** Only what was measured counts, and only for goals that are one figure: a knee is none. */
export function nearly(points: TradeoffPoint[], { goal, budget, deadline, label }: Asked): TradeoffPoint | null {
  if (goal !== "fastest" && goal !== "cheapest") return null;
  const figure = (point: TradeoffPoint): number => (goal === "fastest" ? point.seconds : point.usd);
  const decided = points.find((point) => point.label === label);
  const most = decided === undefined ? Infinity : CLEARLY * figure(decided);
  if (label !== null && decided === undefined) return null;
  return points
    .filter((point) => point.measured && point.usd <= (budget ?? Infinity) && point.seconds <= (deadline ?? Infinity))
    .filter((point) => figure(point) < most)
    .reduce<TradeoffPoint | null>((best, each) => (best === null || figure(each) < figure(best) ? each : best), null);
}

export function Nearly({ point, budget }: { point: TradeoffPoint; budget: number | null }): JSX.Element {
  const { label, seconds, worst_seconds, worst_usd } = point;
  const over = budget !== null && worst_usd !== null && worst_usd > budget;
  const most = over ? usd(worst_usd) : worst_seconds === null ? null : duration(worst_seconds);
  return (
    <p class="nearly">
      Expected to fit, but not certain: {label}, {duration(seconds)} and {usd(point.usd)} in total
      {most !== null && `, at most ${most}`}. A search may make sure of it.
    </p>
  );
}
