/** Configurations relative to each other, while the time to the target is unknown: factors instead of times. */

import type { JSX } from "preact";
import { plural } from "../format";
import type { Ranked } from "../types";
import { Figure } from "./Figure";
import { bend, front } from "./tradeoffMarks";
import { BOUNDARY, CHOSEN, KNEE, seriesKeys, seriesOrder } from "./marks";
import { type Axis, type Drawn, plotted } from "./plotFrame";
import { isWide, spread, ticks } from "./ticks";

interface Props {
  ranking: Ranked[];
  chosen: string | null;
  /** All series in the order of their colours, so that charts beside each other agree. */
  series: string[];
}

export function Ranking({ ranking, chosen, series }: Props): JSX.Element {
  const order = seriesOrder([...series, ...ranking.map((place) => place.series)]);
  const shown = new Map([...order].filter(([name]) => ranking.some((place) => place.series === name)));
  const knee = bend(ranking);
  return (
    <Figure
      title="Relative time and cost to the target"
      summary={`${plural(ranking.length, "configuration")} by time and cost to the target, as factors of the least; ${ranking.filter((place) => place.frontier).length} are best trade-offs${knee ? `; the knee is ${knee}` : ""}${chosen ? `; ${chosen} is chosen` : ""}.`}
      note="Factors of the fastest and of the cheapest: the time to the target is unknown, so this is a ranking without times. Large marks have a measured rate, small ones a predicted one."
      keys={[
        ...seriesKeys(shown),
        BOUNDARY,
        ...(ranking.some((place) => place.label === chosen) ? [CHOSEN] : []),
        ...(knee ? [KNEE] : []),
      ]}
      table={{
        head: ["Configuration", "Time", "Cost", "From", "Boundary"],
        rows: ranking.map((place) => [
          place.label,
          factor(place.time_factor),
          factor(place.cost_factor),
          place.measured ? "ranked, rate measured" : "ranked",
          [place.frontier && "yes", place.label === knee && "knee", place.label === chosen && "chosen"]
            .filter(Boolean)
            .join(", ") || "no",
        ]),
      }}
      draw={(width) => drawn(width, ranking, order, chosen)}
      of={[ranking, chosen]}
    />
  );
}

function factor(value: number): string {
  return `× ${value.toFixed(2)}`;
}

function drawn(width: number, ranking: Ranked[], order: Map<string, number>, chosen: string | null): Drawn {
  const wide = width >= 560;
  const stands = ranking.map((place) => ({
    ...place,
    x: place.time_factor,
    y: place.cost_factor,
    worst: null,
    full: true,
  }));
  return plotted(
    width,
    wide ? 360 : 310,
    { ...axis(ranking.map((place) => place.time_factor), wide ? 8 : 5, "time, relative to the fastest"), grid: true },
    axis(ranking.map((place) => place.cost_factor), 6, "cost, relative to the cheapest"),
    front(stands, order, chosen),
    stands.map(({ x, y, label, measured }) => ({
      x,
      y,
      words: `${label}\ntime ${factor(x)}, cost ${factor(y)}\n${measured ? "ranked by its measured rate" : "ranked by its predicted rate"}`,
    })),
    58,
  );
}

function axis(factors: number[], most: number, label: string): Axis {
  const log = isWide(Math.min(...factors), Math.max(...factors));
  const domain = spread(factors, log, 0.06);
  return { domain, log, ticks: ticks(domain, most, log), format: (value) => `× ${value}`, label };
}
