/** The limits of a chart of time and cost: what they forbid is shaded, and their lines follow a pointer. */

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { duration, usd } from "../format";
import type { Drawn } from "./plotted";

interface Props {
  plot: Drawn;
  width: number;
  height: number;
  budget: number | null;
  deadline: number | null;
  /** Time and cost of what the words should not cover. */
  points: [number, number][];
  onBudget?: ((usd: number) => void) | undefined;
  onDeadline?: ((seconds: number) => void) | undefined;
}

const GRIP = 13;

/** Keys do not reach these lines: the sliders beside the chart do the same, and are read out. */
export function Limits({
  plot,
  width,
  height,
  budget,
  deadline,
  points,
  onBudget,
  onDeadline,
}: Props): JSX.Element | null {
  const box = useRef<SVGSVGElement>(null);
  const [x, y] = [plot.scale("x"), plot.scale("y")];
  if (!x?.range || !y?.range) return null;
  const [left, right] = x.range as [number, number];
  const [bottom, top] = y.range as [number, number];
  const at = clamp(deadline === null ? right : x.apply(deadline), left, right);
  const up = clamp(budget === null ? top : y.apply(budget), top, bottom);
  const crowd = (from: number, to: number) =>
    points.filter(
      (point) => Math.abs(y.apply(point[1]) - up) < 24 && x.apply(point[0]) > from && x.apply(point[0]) < to,
    ).length;
  const wide = 130;
  const atLeft = crowd(left, left + wide) < crowd(right - wide - 2 * GRIP, right);
  const below = top + (onDeadline ? 2 * GRIP + 4 : 8);
  const drag = (move: (event: PointerEvent) => void) => ({
    onPointerDown: (event: PointerEvent) => {
      event.preventDefault();
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      if ((event.currentTarget as Element).hasPointerCapture(event.pointerId)) move(event);
    },
  });
  const toBudget = (event: PointerEvent) => {
    const from = box.current!.getBoundingClientRect();
    onBudget?.(y.invert!(clamp(event.clientY - from.top, top, bottom)) as number);
  };
  const toDeadline = (event: PointerEvent) => {
    const from = box.current!.getBoundingClientRect();
    onDeadline?.(x.invert!(clamp(event.clientX - from.left, left, right)) as number);
  };
  return (
    <svg ref={box} class="limits" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
      {budget !== null && (
        <rect class="forbidden" x={left} y={top} width={right - left} height={Math.max(0, up - top)} />
      )}
      {deadline !== null && (
        <rect
          class="forbidden"
          x={at}
          y={budget === null ? top : up}
          width={Math.max(0, right - at)}
          height={bottom - (budget === null ? top : up)}
        />
      )}
      {budget !== null && (
        <g class={onBudget && "drag up"} {...(onBudget && drag(toBudget))} data-limit="budget">
          <path class="reach" d={`M${left},${up}H${right}`} />
          <path class="limit" d={`M${left},${up}H${right}`} />
          {onBudget && <circle class="grip" cx={right - GRIP} cy={up} r={GRIP - 5} />}
          <text
            class="label limit-words"
            x={atLeft ? left + 6 : right - (onBudget ? 2 * GRIP + 4 : 6)}
            y={up - 6 < top + 8 ? up + 15 : up - 6}
            text-anchor={atLeft ? "start" : "end"}
          >
            budget {usd(budget)}
          </text>
        </g>
      )}
      {deadline !== null && (
        <g class={onDeadline && "drag across"} {...(onDeadline && drag(toDeadline))} data-limit="deadline">
          <path class="reach" d={`M${at},${top}V${bottom}`} />
          <path class="limit" d={`M${at},${top}V${bottom}`} />
          {onDeadline && <circle class="grip" cx={at} cy={top + GRIP} r={GRIP - 5} />}
          <text
            class="label limit-words"
            x={at}
            y={below}
            dy={-4}
            transform={`rotate(-90 ${at} ${below})`}
            text-anchor="end"
          >
            deadline {duration(deadline)}
          </text>
        </g>
      )}
    </svg>
  );
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
