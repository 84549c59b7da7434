/** The operators of a model by their share of its time. */

import * as Plot from "@observablehq/plot";
import type { JSX } from "preact";
import { percent, whole } from "../format";
import type { Operator } from "../types";
import { Figure } from "./Figure";
import type { Drawn } from "./plotFrame";

const MOST = 10;

export function Operators({ operators }: { operators: Operator[] }): JSX.Element {
  const sorted = [...operators].sort((a, b) => b.share - a.share);
  const shown = sorted.slice(0, MOST);
  const rest = sorted.slice(MOST);
  const first = shown[0];
  return (
    <Figure
      title="Key operators"
      summary={`${operators.length} kinds of operators; ${first ? `${first.kind} takes most of the time, ${percent(first.share)}` : "none known"}.`}
      note={
        rest.length > 0
          ? `${rest.length} more take ${percent(rest.reduce((sum, each) => sum + each.share, 0))} together.`
          : undefined
      }
      table={{
        head: ["Operator", "Count", "Share of the time"],
        rows: sorted.map((each) => [each.kind, whole(each.count), percent(each.share)]),
      }}
      draw={(width) => drawn(width, shown)}
      of={[operators]}
    />
  );
}

function drawn(width: number, shown: Operator[]): Drawn {
  const longest = Math.max(...shown.map((each) => plain(each.kind).length), 4);
  const left = Math.min(0.42 * width, 6.6 * longest + 14);
  return Plot.plot({
    width,
    height: 26 * shown.length + 12,
    marginLeft: left,
    marginRight: 104,
    marginTop: 4,
    marginBottom: 4,
    className: "plot",
    x: { axis: null, domain: [0, Math.max(...shown.map((each) => each.share), 1e-9)] },
    y: { label: null, domain: shown.map((each) => each.kind), padding: 0.3 },
    marks: [
      Plot.axisY({
        tickFormat: (kind: string) => shortened(kind, Math.floor((left - 12) / 6.6)),
        tickSize: 0,
        fill: "var(--ink)",
        label: null,
      }),
      Plot.barX(shown, { x: "share", y: "kind", fill: "var(--accent)", fillOpacity: 0.8, rx: 2 }),
      Plot.text(shown, {
        x: "share",
        y: "kind",
        text: (each: Operator) => `${percent(each.share)}, ${whole(each.count)} ×`,
        textAnchor: "start",
        dx: 7,
        fill: "var(--soft)",
      }),
    ],
  }) as Drawn;
}

/** 'aten::addmm' -> 'addmm': who made the name says nothing here. */
function plain(kind: string): string {
  return kind.replace(/^aten::_?/, "");
}

function shortened(kind: string, most: number): string {
  const name = plain(kind);
  return name.length <= most ? name : `${name.slice(0, most - 1)}…`;
}
