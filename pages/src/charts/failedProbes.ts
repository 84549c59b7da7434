/** Below a search path: rows of failed, refused and active probes. */

import type { Refusal, Step } from "../types";
import { colour, crossed, outline } from "./marks";
import { add, type Draw } from "./plotFrame";
import { CHARACTER, LabelPlacer } from "./labelPlacement";

/** Of more probes, each mark stands where it belongs, and only the chosen one has its number. */
export const CROWD = 40;

/** Pixels of a row. */
export const ROW = 34;

interface Sized {
  series: string;
  nodes: number;
  label: string;
  because: string;
}

export interface Row {
  name: string;
  look: "cross" | "off" | "going";
  at: { nodes: number; series: string; words: string; title: string }[];
}

/** '6 x g4dn.12xlarge' has a place on the axis; anything else has not. */
export function sized(refusals: Refusal[]): Sized[] {
  return refusals.flatMap(({ label, because }) => {
    const found = /^(\d+) x (.+)$/.exec(label);
    return found ? [{ nodes: Number(found[1]), series: found[2]!, label, because }] : [];
  });
}

/** A row for each way to fail, one for what was refused, one for what is measured now, or was when nobody went on. */
export function rowsBelow(path: Step[], refused: Sized[], going: Sized[], driven: boolean): Row[] {
  const kinds = new Map<string, Row>();
  for (const step of path.filter((each) => each.rate === null)) {
    const row: Row = kinds.get(step.outcome) ?? {
      name: `no rate: ${step.outcome.replaceAll("_", " ")}`,
      look: "cross",
      at: [],
    };
    row.at.push({
      nodes: step.nodes ?? 1,
      series: step.series,
      words: path.length > CROWD ? "" : String(step.number),
      title: `#${step.number} ${step.label}`,
    });
    kinds.set(step.outcome, row);
  }
  const told = (each: Sized) => ({
    nodes: each.nodes,
    series: each.series,
    words: "",
    title: `${each.label}: ${each.because}`,
  });
  const rows = [...kinds.values()];
  if (refused.length > 0) rows.push({ name: "refused", look: "off", at: refused.map(told) });
  if (going.length > 0)
    rows.push({
      name: driven ? "being measured now" : "interrupted",
      look: driven ? "going" : "off",
      at: going.map((each) => ({ ...told(each), words: each.series })),
    });
  return rows;
}

export function below(rows: Row[], order: Map<string, number>): Draw {
  return (group, at) => {
    rows.forEach((row, i) => {
      const top = at.bottom - ROW * (rows.length - i);
      add(group, "path", { d: `M${at.left},${top}H${at.right}`, class: "grid" });
      add(group, "text", { x: at.left + 2, y: top + 12, class: "label soft" }, row.name);
      const room = new LabelPlacer([at.left, top, at.right + 8, top + ROW]);
      for (const each of row.at) {
        const y = top + 23;
        const wanted = at.x(each.nodes);
        const wide = CHARACTER * each.words.length + 10;
        const shift =
          Array.from({ length: 41 }, (_, k) => 5 * (k % 2 ? (k + 1) / 2 : -k / 2)).find((by) =>
            room.free([wanted + by - 6, y - 6, wanted + by + wide, y + 6]),
          ) ?? 0;
        const x = wanted + shift;
        room.take([x - 6, y - 6, x + wide, y + 6]);
        const index = order.get(each.series) ?? order.size;
        const mark = add(group, "path", {
          d: row.look === "cross" ? crossed() : outline(index, 4.5),
          transform: `translate(${x} ${y})`,
          class: row.look,
          stroke: colour(index),
        });
        add(mark, "title", {}, each.title);
        if (each.words) add(group, "text", { x: x + 8, y: y + 4, class: "label" }, each.words);
      }
    });
  };
}
