/** The limits in a chart of time and cost: forbidden areas are shaded, and the lines can be dragged. */

import type { JSX } from "preact";
import { duration, usd } from "../format";
import { type Along, GRIP, Handle } from "./Handle";
import type { Drawn } from "./plotFrame";

type Move = (value: number, digits: number) => void;

interface Props {
  plot: Drawn;
  width: number;
  height: number;
  budget: number | null;
  deadline: number | null;
  /** Time and cost of what the words should not cover. */
  points: [number, number][];
  onBudget?: Move | undefined;
  onDeadline?: Move | undefined;
}

/** Pixels that the words of a budget take. */
const WORDS = 130;

export function Limits({ plot, width, height, budget, deadline, ...rest }: Props): JSX.Element | null {
  const [x, y] = [axis(plot, "x"), axis(plot, "y")];
  if (x === null || y === null) return null;
  const [left, right] = x.ends.map(x.place) as [number, number];
  const [bottom, top] = y.ends.map(y.place) as [number, number];
  const at = clamp(deadline === null ? right : x.place(deadline), left, right);
  const up = clamp(budget === null ? top : y.place(budget), top, bottom);
  const { onBudget, onDeadline } = rest;
  const crowd = (from: number, to: number): number =>
    rest.points.filter(([s, usd]) => Math.abs(y.place(usd) - up) < 24 && x.place(s) > from && x.place(s) < to).length;
  // No line runs through the words: they stand before a deadline that is near the end.
  const free = deadline !== null && at > right - WORDS - 2 * GRIP ? at : right;
  const atLeft = crowd(left, left + WORDS) < crowd(free - WORDS - 2 * GRIP, free);
  const below = top + (onDeadline ? 2 * GRIP + 4 : 8);
  return (
    <svg
      class="limits"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      aria-hidden={onBudget || onDeadline ? undefined : "true"}
    >
      {budget !== null && <rect class="forbidden" x={left} y={top} width={right - left} height={up - top} />}
      {deadline !== null && <rect class="forbidden" x={at} y={up} width={right - at} height={bottom - up} />}
      {budget !== null && (
        <Line
          name="Budget"
          value={budget}
          words={usd(budget)}
          along={y}
          grip={[right - GRIP, up]}
          line={`M${left},${up}H${right}`}
          onMove={onBudget}
        >
          <text
            class="label limit-words"
            aria-hidden="true"
            x={atLeft ? left + 6 : free - (onBudget && free === right ? 2 * GRIP + 4 : 6)}
            y={up - 6 < top + 8 ? up + 15 : up - 6}
            text-anchor={atLeft ? "start" : "end"}
          >
            budget {usd(budget)}
            {beyond(budget, y, "↑", "↓")}
          </text>
        </Line>
      )}
      {deadline !== null && (
        <Line
          name="Deadline"
          value={deadline}
          words={duration(deadline)}
          along={x}
          grip={[at, top + GRIP]}
          line={`M${at},${top}V${bottom}`}
          onMove={onDeadline}
        >
          <text
            class="label limit-words"
            aria-hidden="true"
            x={at}
            y={below}
            dy={-4}
            transform={`rotate(-90 ${at} ${below})`}
            text-anchor="end"
          >
            deadline {duration(deadline)}
            {beyond(deadline, x, "↓", "↑")}
          </text>
        </Line>
      )}
    </svg>
  );
}

type LineProps = Omit<Parameters<typeof Handle>[0], "onMove"> & { onMove: Move | undefined };

/** With nobody to tell where it went, a line stays where it is. */
function Line({ onMove, ...rest }: LineProps): JSX.Element {
  if (onMove !== undefined) return <Handle {...rest} onMove={onMove} />;
  return (
    <g>
      <path class="limit" d={rest.line} />
      {rest.children}
    </g>
  );
}

function axis(plot: Drawn, name: "x" | "y"): Along | null {
  const scale = plot.scale(name);
  if (!scale?.domain || !scale.invert) return null;
  return {
    upright: name === "y",
    ends: scale.domain as [number, number],
    place: (value) => scale.apply(value) as number,
    value: (pixel) => scale.invert!(pixel) as number,
  };
}

/** A limit that is far away stands at the edge, and points there; the deadline's words are turned. */
function beyond(value: number, { ends }: Along, more: string, less: string): string {
  return value > ends[1] ? ` ${more}` : value < ends[0] ? ` ${less}` : "";
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
