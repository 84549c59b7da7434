/** What all charts share: a frame by Observable Plot whose colours are the page's variables, and marks of our own in it. */

import * as Plot from "@observablehq/plot";

export type Drawn = (SVGSVGElement | HTMLElement) & Plot.Plot;

/** A mark of our own: it draws where the scales say, into the group it is given. */
export type Draw = (group: SVGGElement, at: Placed) => void;

export interface Placed {
  x: (value: number) => number;
  y: (value: number) => number;
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface Axis {
  domain: [number, number];
  log?: boolean;
  ticks: number[];
  format: (value: number) => string;
  label: string;
  /** Pixels from the frame's edge to the domain's ends. */
  inset?: [number, number];
  grid?: boolean;
}

export interface Pointed {
  x: number;
  y: number;
  words: string;
}

export function plotted(
  width: number,
  height: number,
  x: Axis,
  y: Axis,
  draw: Draw[],
  pointed: Pointed[] = [],
  left = 54,
): Drawn {
  const margin = { marginLeft: left, marginRight: 12, marginTop: 28, marginBottom: 40 };
  const across = [margin.marginLeft + (x.inset?.[0] ?? 0), width - margin.marginRight - (x.inset?.[1] ?? 0)];
  const up = [height - margin.marginBottom - (y.inset?.[0] ?? 0), margin.marginTop + (y.inset?.[1] ?? 0)];
  const soft = { fill: "var(--soft)", stroke: null };
  return Plot.plot({
    width,
    height,
    ...margin,
    className: "plot",
    x: { type: x.log ? "log" : "linear", domain: x.domain, range: across, label: null },
    y: { type: y.log ? "log" : "linear", domain: y.domain, range: up, label: null },
    marks: [
      y.grid === false ? null : Plot.gridY(y.ticks, { stroke: "var(--line)", strokeOpacity: 1 }),
      x.grid ? Plot.gridX(x.ticks, { stroke: "var(--line)", strokeOpacity: 1 }) : null,
      mark((group, at) => add(group, "path", { d: `M${at.left},${at.bottom}H${at.right}`, stroke: "var(--axis)" })),
      Plot.axisY(y.ticks, {
        text: y.format as (value: unknown) => string,
        tickSize: 0,
        tickPadding: 8,
        label: null,
        ...soft,
      }),
      Plot.axisX(x.ticks, {
        text: x.format as (value: unknown) => string,
        tickSize: 5,
        label: null,
        color: "var(--axis)",
        ...soft,
      }),
      Plot.text([y.label], { frameAnchor: "top-left", dx: -margin.marginLeft + 4, dy: -24, fill: "var(--soft)" }),
      Plot.text([x.label], { frameAnchor: "bottom-right", dy: 36, fill: "var(--soft)" }),
      ...draw.map(mark),
      pointed.length > 0 ? tip(pointed) : null,
    ],
  }) as Drawn;
}

/** What a pointer near a point reads. Plot would name its group, which a part of an image may not have. */
function tip(pointed: Pointed[]): Plot.Markish {
  const made = Plot.tip(
    pointed,
    Plot.pointer({
      x: "x",
      y: "y",
      title: "words",
      fill: "var(--raised)",
      stroke: "var(--axis)",
      textPadding: 10,
      lineHeight: 1.35,
      lineWidth: 30,
      maxRadius: 30,
    }),
  );
  return Object.assign(made, { ariaLabel: null });
}

function mark(draw: Draw): Plot.RenderFunction {
  return (_index, scales, _values, { width, height, marginLeft, marginRight, marginTop, marginBottom }) => {
    const group = document.createElementNS("http://www.w3.org/2000/svg", "g");
    const { x, y } = scales as unknown as Pick<Placed, "x" | "y">;
    draw(group, { x, y, left: marginLeft, top: marginTop, right: width - marginRight, bottom: height - marginBottom });
    return group;
  };
}

/** Append an element of SVG with its attributes; `words`: the text in it. */
export function add(
  group: SVGElement,
  tag: string,
  attributes: Record<string, string | number | undefined>,
  words?: string,
): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined) made.setAttribute(name, typeof value === "number" ? value.toFixed(1) : value);
  if (words !== undefined) made.textContent = words;
  if (tag === "text" && attributes["text-anchor"] === undefined) made.setAttribute("text-anchor", "start"); // Plot centres
  group.append(made);
  return made;
}

export function lineOf(points: [number, number][]): string {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");
}
