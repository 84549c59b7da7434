/** How a series looks: its place gives colour and shape, as in the report. */

import type { ComponentChildren } from "preact";

const SHAPES: [corners: number, turn: number, size: number][] = [
  [0, 0, 1.0],
  [4, 45, 1.25],
  [3, -90, 1.4],
  [4, 0, 1.3],
  [3, 90, 1.4],
  [5, -90, 1.2],
  [6, 0, 1.15],
];

const COLOURS = 8;

/** The names in the order they first come: their place gives the look. */
export function seriesOrder(names: string[]): Map<string, number> {
  const order = new Map<string, number>();
  for (const name of names) if (!order.has(name)) order.set(name, order.size);
  return order;
}

export function colour(index: number): string {
  return `var(--c${index % COLOURS})`;
}

/** The outline of a series' mark, around 0, 0. */
export function outline(index: number, radius = 5): string {
  const [corners, turn, size] = SHAPES[index % SHAPES.length]!;
  if (corners === 0)
    return `M${-radius},0A${radius},${radius} 0 1 0 ${radius},0A${radius},${radius} 0 1 0 ${-radius},0Z`;
  const at = (i: number) => ((turn + (360 * i) / corners) * Math.PI) / 180;
  const points = Array.from(
    { length: corners },
    (_, i) => `${(radius * size * Math.cos(at(i))).toFixed(2)},${(radius * size * Math.sin(at(i))).toFixed(2)}`,
  );
  return `M${points.join("L")}Z`;
}

export function crossed(radius = 4): string {
  return `M${-radius},${-radius}L${radius},${radius}M${-radius},${radius}L${radius},${-radius}`;
}

export interface Key {
  mark: ComponentChildren;
  words: string;
}

export function seriesKeys(order: Map<string, number>): Key[] {
  return [...order]
    .filter(([name]) => name !== "")
    .map(([name, index]) => ({ mark: <Swatch index={index} />, words: name }));
}

export const BOUNDARY: Key = { mark: <path d="M-8,-6H-2V2H8" class="boundary" />, words: "best trade-offs" };
export const CHOSEN: Key = { mark: <circle r={6} class="ring" />, words: "chosen" };
export const FAILED: Key = { mark: <path d={crossed()} class="cross" />, words: "failed" };
export const REFUSED: Key = { mark: <circle r={4} class="off" />, words: "refused: over the limit" };
export const HOLLOW: Key = { mark: <circle r={4.5} class="hollow" />, words: "cannot be certified" };
export const KNEE: Key = { mark: <rect x={-6} y={-6} width={12} height={12} class="knee" />, words: "knee" };

function Swatch({ index }: { index: number }) {
  return <path d={outline(index, 4.6)} fill={colour(index)} />;
}
