/** The loss by epoch or stage, so far and planned. */

import type { JSX } from "preact";
import { duration, significant, usd } from "../format";
import type { Functions } from "../types";
import { Figure } from "./Figure";
import { add, type Draw, type Drawn, lineOf, plotted } from "./plotFrame";
import { CHARACTER } from "./labelPlacement";
import { spread, ticks } from "./ticks";

/** A stage or an epoch, as it went. */
type Done = Pick<Functions["epochs"][number], "loss" | "seconds" | "usd"> & { stage?: number; epoch?: number | null };

/** What was done of a run: its stages or, of a training run, its epochs. */
export function doneOf({ phase, stages, epochs }: Functions): Done[] {
  return phase === "training" ? epochs : stages.map((each) => ({ ...each, epoch: null, loss: each.best_loss }));
}

interface Props {
  done: Done[];
  /** How many epochs, or stages, the plan has. */
  planned: number | null;
  target: number | null;
}

export function Epochs({ done, planned, target }: Props): JSX.Element {
  const word = done.some((each) => each.epoch !== undefined && each.epoch !== null) ? "epoch" : "stage";
  const at = (each: Done, i: number): number => each.epoch ?? each.stage ?? i + 1;
  const told = done
    .map((each, i) => ({ ...each, at: at(each, i) }))
    .filter((each): each is Done & { at: number; loss: number } => typeof each.loss === "number");
  const [first, last] = [told[0], told.at(-1)];
  return (
    <Figure
      title={`Loss by ${word}`}
      summary={
        first && last
          ? `From ${significant(first.loss, 4)} after ${word} ${first.at} to ${significant(last.loss, 4)} after ${word} ${last.at}${planned ? `, of ${planned} planned` : ""}.`
          : "No loss yet."
      }
      note={word === "stage" ? "The best loss of all trials of a stage." : undefined}
      table={{
        head: [word === "epoch" ? "Epoch" : "Stage", "Loss", "Time", "Cost"],
        rows: done.map((each, i) => [
          String(at(each, i)),
          each.loss === null ? null : significant(each.loss, 4),
          duration(each.seconds),
          usd(each.usd),
        ]),
      }}
      draw={(width) => drawn(width, told, word, planned, target)}
      of={[done, planned, target]}
    />
  );
}

function drawn(
  width: number,
  told: (Done & { at: number; loss: number })[],
  word: string,
  planned: number | null,
  target: number | null,
): Drawn {
  const up = spread([...told.map((each) => each.loss), ...(target === null ? [] : [target])], false, 0.1);
  const end = Math.max(planned ?? 0, told.at(-1)?.at ?? 1);
  const across: [number, number] = [0.5, end + 0.5];
  return plotted(
    width,
    width >= 560 ? 290 : 250,
    {
      domain: across,
      ticks: ticks(across, width >= 560 ? 10 : 5).filter((n) => Number.isInteger(n) && n > 0),
      format: String,
      label: word,
    },
    { domain: up, ticks: ticks(up, 5), format: (loss) => significant(loss, 3), label: "loss" },
    [ahead(told.at(-1)?.at ?? 0, planned, word), curve(told, target)],
    told.map((each) => ({
      x: each.at,
      y: each.loss,
      words: `${word} ${each.at}: loss ${significant(each.loss, 4)}\n${duration(each.seconds)}, ${usd(each.usd)}`,
    })),
  );
}

/** What was planned and is not done. */
function ahead(last: number, planned: number | null, word: string): Draw {
  return (group, at) => {
    if (planned === null || planned <= last) return;
    const x = at.x(last + 0.5);
    add(group, "rect", { x, y: at.top, width: at.x(planned + 0.5) - x, height: at.bottom - at.top, class: "ahead" });
    const words = `planned: ${planned} ${word}s`;
    if (at.right - x > CHARACTER * words.length + 12)
      add(group, "text", { x: at.right - 6, y: at.top + 14, "text-anchor": "end", class: "label soft" }, words);
  };
}

function curve(told: { at: number; loss: number }[], target: number | null): Draw {
  return (group, at) => {
    if (target !== null) {
      add(group, "path", { d: `M${at.left},${at.y(target)}H${at.right}`, class: "goal" });
      add(
        group,
        "text",
        { x: at.left + 6, y: at.y(target) - 6, class: "label soft" },
        `target ${significant(target, 4)}`,
      );
    }
    const points = told.map((each): [number, number] => [at.x(each.at), at.y(each.loss)]);
    add(group, "path", { d: lineOf(points), class: "spent" });
    for (const [x, y] of points) add(group, "circle", { cx: x, cy: y, r: told.length > 60 ? 2 : 3.4, class: "dot" });
    const [x, y] = points.at(-1) ?? [0, 0];
    if (told.length > 0)
      add(
        group,
        "text",
        {
          x: x > at.right - 50 ? x - 4 : x + 7,
          y: y - 9,
          "text-anchor": x > at.right - 50 ? "end" : "start",
          class: "label strong",
        },
        significant(told.at(-1)!.loss, 4),
      );
  };
}
