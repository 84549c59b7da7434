/** A chart that a planner describes: points, lines or bars. A planner of another package needs nothing else. */

import type { JSX } from "preact";
import type { Figure as Described } from "../types";
import { Figure } from "./Figure";
import { colour, outline, seriesKeys, seriesOrder } from "./marks";
import { add, type Draw, type Drawn, lineOf, plotted } from "./plotted";
import { axisOf, inWords, nameAxis, namesOf, onAxis, type Placed, placed } from "./told";

const CROWDED = 60;
const WIDEST_BAR = 56;
/** The width of a letter of a row's name, in pixels. */
const LETTER = 5.6;

export function AnyFigure({ figure }: { figure: Described }): JSX.Element {
  const { title, note, series, x, y } = figure;
  const count = series.reduce((sum, each) => sum + each.points.length, 0);
  const names = series.map((each) => each.name).filter(Boolean);
  return (
    <Figure
      title={title}
      summary={`${y.label} by ${x.label}, ${count} ${figure.kind === "bars" ? "bars" : "points"}${names.length > 0 ? `: ${names.join(", ")}` : ""}.`}
      note={note || undefined}
      keys={series.length > 1 ? seriesKeys(seriesOrder(names)) : []}
      table={{
        head: [x.label, "Series", y.label, "More"],
        rows: series.flatMap(({ name, points }) =>
          points.map((point) => [onAxis(point.x, x), name, onAxis(point.y, y), point.label]),
        ),
      }}
      draw={(width) => drawn(width, figure)}
      of={[figure]}
    />
  );
}

function drawn(width: number, figure: Described): Drawn {
  const [points, names] = [placed(figure), namesOf(figure)];
  const on = (axis: "x" | "y"): number[] => figure.limits.flatMap((each) => (each.axis === axis ? [each.value] : []));
  const wide = width >= 560;
  const rows = figure.y.names;
  const floor = figure.kind === "bars" && figure.y.scale === "linear" ? [0] : [];
  const [across, up] = [points.map((point) => point.x), points.map((point) => point.y)];
  return plotted(
    width,
    wide ? 320 : 280,
    names ? nameAxis(figure.x.label, names, wide ? 12 : 5) : axisOf(figure.x, [...across, ...on("x")], wide ? 8 : 4),
    rows.length > 0
      ? nameAxis(figure.y.label, rows, rows.length)
      : axisOf(figure.y, [...up, ...on("y"), ...floor], 5),
    [figure.kind === "bars" ? bars(points, figure) : marks(points, figure), limits(figure)],
    points,
    Math.max(66, 20 + LETTER * Math.max(...rows.map((name) => name.length))),
  );
}

function marks(points: Placed[], { kind, series }: Described): Draw {
  return (group, at) => {
    series.forEach((_, index) => {
      const own = points.filter((point) => point.series === index);
      const corner = (point: Placed): [number, number] => [at.x(point.x), at.y(point.y)];
      const pieces = kind === "lines" ? new Set(own.map(({ piece }) => piece)) : [];
      for (const piece of pieces) {
        const corners = own.filter((point) => point.piece === piece).map(corner);
        add(group, "path", { d: lineOf(corners), class: "thread strong", stroke: colour(index) });
      }
      for (const [x, y] of own.map(corner))
        add(group, "path", {
          d: outline(index, own.length > CROWDED ? 2.2 : 4.4),
          transform: `translate(${x} ${y})`,
          class: "mark",
          fill: colour(index),
        });
    });
  };
}

/** The bars of a place stand side by side. */
function bars(points: Placed[], { series, y }: Described): Draw {
  return (group, at) => {
    const places = new Set(points.map((point) => point.x)).size;
    const width = Math.min(WIDEST_BAR, (0.8 * (at.right - at.left)) / Math.max(1, places) / series.length);
    for (const point of points) {
      const foot = y.scale === "log" ? at.bottom : at.y(0);
      const top = at.y(point.y);
      add(group, "rect", {
        x: at.x(point.x) + (point.series - series.length / 2) * width,
        y: Math.min(top, foot),
        width: Math.max(1, width - 1),
        height: Math.abs(foot - top),
        class: "mark",
        fill: colour(point.series),
      });
    }
  };
}

function limits({ limits: lines, x, y }: Described): Draw {
  return (group, at) => {
    for (const { value, label } of lines.filter(({ axis }) => axis === "y")) {
      const level = at.y(value);
      add(group, "path", { d: `M${at.left},${level}H${at.right}`, class: "limit" });
      const words = `${label} ${inWords(value, y.unit)}`;
      add(group, "text", { x: at.left + 6, y: Math.max(at.top + 12, level - 6), class: "label limit-words" }, words);
    }
    for (const { value, label } of lines.filter(({ axis }) => axis === "x")) {
      const across = at.x(value);
      const beyond = across > (at.left + at.right) / 2;
      add(group, "path", { d: `M${across},${at.top}V${at.bottom}`, class: "limit" });
      add(
        group,
        "text",
        { x: across + (beyond ? -6 : 6), y: at.bottom - 8, "text-anchor": beyond ? "end" : "start", class: "label limit-words" },
        `${label} ${inWords(value, x.unit)}`,
      );
    }
  };
}
