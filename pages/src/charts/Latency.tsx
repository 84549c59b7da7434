/** The trials of a server: latency against throughput; the size of a mark is its price; forbidden areas are shaded. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { milliseconds, rate as rateWords, significant, usd } from "../format";
import type { Serving, Trial } from "../types";
import { Figure } from "./Figure";
import { CHOSEN, colour, crossed, type Key, outline, seriesKeys, seriesOrder } from "./marks";
import { add, type Draw, type Drawn, plotted } from "./plotFrame";
import { CHARACTER, LabelPlacer } from "./labelPlacement";
import { Segments } from "./Segments";
import { isWide, msTick, rateTick, spread, ticks } from "./ticks";

interface Props {
  serving: Serving;
  /** Other caps than the run's: those of a what-if. */
  caps?: Record<string, number>;
  minRate?: number | null;
  /** The number of the trial to ring. */
  chosen?: number | null;
  /** The latency to begin with; else one that has a cap. */
  first?: string;
}

const BREAKS: Key = { mark: <circle r={4.5} class="hollow" />, words: "misses a requirement" };
const FAILED: Key = { mark: <path d={crossed()} class="cross" />, words: "failed: no rate" };

export function Latency({ serving, caps = capsOf(serving), minRate = null, chosen, first }: Props): JSX.Element {
  const figures = latencies(serving);
  const [figure, setFigure] = useState(
    first ??
      Object.keys(caps).find((each) => figures.includes(each)) ??
      (figures.includes("p95") ? "p95" : figures[0]) ??
      "p95",
  );
  const { trials, unit } = serving;
  const knob = wordKnob(trials);
  const kind = (trial: Trial): string => (knob === null ? "" : `${knob} ${String(trial.knobs[knob] ?? "–")}`);
  const order = seriesOrder(trials.map(kind));
  const shown = trials.filter((trial) => trial.rate !== null && latency(trial, figure) !== null);
  const keeps = (trial: Trial): boolean =>
    Object.entries(caps).every(([each, most]) => (latency(trial, each) ?? Infinity) <= most) &&
    (minRate === null || (trial.rate ?? 0) >= minRate);
  const ringed = chosen === undefined ? trials.find((trial) => trial.chosen)?.number : chosen;
  const failed = trials.filter((trial) => trial.rate === null);
  const keys = [
    ...seriesKeys(order),
    ...(ringed ? [CHOSEN] : []),
    ...(shown.every(keeps) ? [] : [BREAKS]),
    ...(failed.length > 0 ? [FAILED] : []),
  ];
  return (
    <Figure
      title="Latency against throughput"
      summary={`${shown.length} trials by ${figure} latency and ${unit}; ${shown.filter(keeps).length} meet all requirements${ringed ? `; trial ${ringed} is chosen` : ""}.`}
      note="Up and to the left is better. A larger mark means a higher cost per answer. Numbers are the order of the trials."
      keys={keys}
      table={{
        head: ["Trial", unit, ...figures, "$ per million", "Meets all"],
        rows: trials.map((trial) => [
          `${trial.number}: ${trial.label}`,
          trial.rate === null ? null : rateWords(trial.rate),
          ...figures.map((each) => words(latency(trial, each))),
          trial.usd_per_million === null ? null : price(trial.usd_per_million),
          trial.rate === null ? "failed" : trial.number === ringed ? "yes, chosen" : keeps(trial) ? "yes" : "no",
        ]),
      }}
      draw={(width) =>
        drawn(width, shown, failed, {
          figure,
          unit,
          kind,
          order,
          keeps,
          cap: caps[figure] ?? null,
          minRate,
          ringed: ringed ?? null,
        })
      }
      of={[serving, figure, JSON.stringify(caps), minRate, ringed]}
      switches={
        figures.length > 1 ? (
          <Segments
            label="Which latency"
            of={figures}
            chosen={figure}
            onChoose={setFigure}
            name={(each) => each.replace("_", " ")}
          />
        ) : null
      }
    />
  );
}

/** p50, p95 ...: the latencies that were measured, as the trials name them. */
export function latencies({ trials, caps }: Serving): string[] {
  const found = new Set<string>();
  for (const trial of trials)
    for (const [name, seconds] of Object.entries(trial.figures ?? {})) if (seconds !== null) found.add(name);
  for (const cap of caps) found.add(cap.figure);
  return [...found].sort();
}

/** In milliseconds, by the latency's name. */
export function capsOf({ caps }: Serving): Record<string, number> {
  return Object.fromEntries(caps.flatMap((cap) => (cap.at_most_s === null ? [] : [[cap.figure, inMs(cap.at_most_s)]])));
}

/** In milliseconds. */
export function latency(trial: Trial, figure: string): number | null {
  const seconds = trial.figures?.[figure] ?? null;
  return seconds === null ? null : inMs(seconds);
}

/** 0.03 s is 30 ms, and not 29.999999999999996. */
function inMs(seconds: number): number {
  return Number((1_000 * seconds).toPrecision(12));
}

/** Dollars with three digits: what a million answers cost is often cents. */
export function price(dollars: number): string {
  return dollars >= 1 ? usd(dollars) : `$${significant(dollars)}`;
}

function words(ms: number | null): string | null {
  return ms === null ? null : milliseconds(ms);
}

interface Look {
  figure: string;
  unit: string;
  kind: (trial: Trial) => string;
  order: Map<string, number>;
  keeps: (trial: Trial) => boolean;
  cap: number | null;
  minRate: number | null;
  ringed: number | null;
}

function drawn(width: number, shown: Trial[], failed: Trial[], look: Look): Drawn {
  const wide = width >= 560;
  const at = shown.map((trial) => latency(trial, look.figure)!);
  const rates = shown.map((trial) => trial.rate!);
  const [logX, logY] = [true, isWide(Math.min(...rates), Math.max(...rates))];
  const across = spread(look.cap === null ? at : [...at, look.cap], logX, 0.1);
  const up = spread(look.minRate === null ? rates : [...rates, look.minRate], logY, 0.1);
  return plotted(
    width,
    (wide ? 400 : 330) + (failed.length > 0 ? 22 : 0),
    {
      domain: across,
      log: logX,
      ticks: ticks(across, wide ? 7 : 4, true),
      format: msTick,
      label: `${look.figure.replace("_", " ")} latency`,
      inset: [14, 14],
    },
    {
      domain: up,
      log: logY,
      ticks: ticks(up, 6, logY),
      format: rateTick,
      label: look.unit,
      inset: [failed.length > 0 ? 34 : 12, 12],
    },
    [forbidden(look), points(shown, look), failures(failed, look)],
    shown.map((trial) => ({ x: latency(trial, look.figure)!, y: trial.rate!, words: hover(trial, look) })),
  );
}

function forbidden({ cap, minRate, figure }: Look): Draw {
  return (group, at) => {
    if (cap !== null) {
      const x = at.x(cap);
      add(group, "rect", {
        x,
        y: at.top,
        width: Math.max(0, at.right - x),
        height: at.bottom - at.top,
        class: "forbidden",
      });
      add(group, "path", { d: `M${x},${at.top}V${at.bottom}`, class: "limit" });
      add(
        group,
        "text",
        { x: x - 6, y: at.top + 12, "text-anchor": "end", class: "label limit-words" },
        `${figure} ≤ ${milliseconds(cap)}`,
      );
    }
    if (minRate === null) return;
    const y = at.y(minRate);
    add(group, "rect", {
      x: at.left,
      y,
      width: at.right - at.left,
      height: Math.max(0, at.bottom - y),
      class: "forbidden",
    });
    add(group, "path", { d: `M${at.left},${y}H${at.right}`, class: "limit" });
    add(group, "text", { x: at.left + 6, y: y - 6, class: "label limit-words" }, `at least ${rateWords(minRate)}`);
  };
}

function points(shown: Trial[], look: Look): Draw {
  return (group, at) => {
    const room = new LabelPlacer([at.left, at.top, at.right, at.bottom]);
    const sizes = sizesOf(shown);
    const place = (trial: Trial): [number, number] => [at.x(latency(trial, look.figure)!), at.y(trial.rate!)];
    for (const trial of shown) {
      const [x, y] = place(trial);
      const half = sizes(trial) + 1;
      room.take([x - half, y - half, x + half, y + half]);
    }
    for (const trial of [...shown].sort((a, b) => sizes(b) - sizes(a))) {
      const [x, y] = place(trial);
      const index = look.order.get(look.kind(trial))!;
      const full = look.keeps(trial);
      add(group, "path", {
        d: outline(index, sizes(trial)),
        transform: `translate(${x} ${y})`,
        class: full ? "mark" : "hollow",
        [full ? "fill" : "stroke"]: colour(index),
      });
      if (trial.number === look.ringed) add(group, "circle", { cx: x, cy: y, r: sizes(trial) + 5, class: "ring" });
    }
    for (const trial of [...shown].sort(
      (a, b) => Number(b.number === look.ringed) - Number(a.number === look.ringed),
    )) {
      const [x, y] = place(trial);
      const chosen = trial.number === look.ringed;
      const spot = room.label(x, y, String(trial.number), sizes(trial) + (chosen ? 9 : 4));
      if (spot)
        add(
          group,
          "text",
          { x: spot.x, y: spot.y, "text-anchor": spot.anchor, class: chosen ? "label strong" : "label" },
          String(trial.number),
        );
    }
  };
}

/** A mark's radius: its area follows the price of a million answers. */
function sizesOf(shown: Trial[]): (trial: Trial) => number {
  const prices = shown.map((trial) => trial.usd_per_million ?? 0).filter((price) => price > 0);
  const least = Math.min(...prices);
  const most = Math.max(...prices);
  return (trial) =>
    prices.length === 0 || most === least
      ? 5.5
      : 4 + 6 * Math.sqrt(Math.max(0, (trial.usd_per_million ?? least) - least) / (most - least));
}

function failures(failed: Trial[], { kind, order }: Look): Draw {
  return (group, at) => {
    if (failed.length === 0) return;
    const name = "failed:";
    add(group, "text", { x: at.left + 4, y: at.bottom - 8, class: "label soft" }, name);
    failed.forEach((trial, i) => {
      const x = at.left + 16 + CHARACTER * name.length + 30 * i;
      add(group, "path", {
        d: crossed(),
        transform: `translate(${x} ${at.bottom - 12})`,
        class: "cross",
        stroke: colour(order.get(kind(trial))!),
      });
      add(group, "text", { x: x + 8, y: at.bottom - 8, class: "label" }, String(trial.number));
    });
  };
}

function wordKnob(trials: Trial[]): string | null {
  const settings = new Map<string, Set<unknown>>();
  for (const trial of trials) {
    for (const [name, setting] of Object.entries(trial.knobs)) {
      if (typeof setting === "string") settings.set(name, (settings.get(name) ?? new Set()).add(setting));
    }
  }
  return [...settings].find(([, found]) => found.size > 1)?.[0] ?? null;
}

function hover(trial: Trial, { figure, unit, keeps }: Look): string {
  return [
    `${trial.number}: ${trial.label}`,
    `${rateWords(trial.rate!)} ${unit}`,
    `${figure} ${milliseconds(latency(trial, figure)!)}`,
    ...(trial.usd_per_million === null ? [] : [`${price(trial.usd_per_million)} per million`]),
    ...(keeps(trial) ? [] : ["misses a requirement"]),
  ].join("\n");
}
