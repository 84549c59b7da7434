/** A chart that a planner describes: points, lines or bars. A planner of another package needs nothing else. */

import type { JSX } from "preact";
import type { Figure as Described } from "../types";
import { Figure, type Told } from "./Figure";
import { colour, crossed, type Key, outline, seriesKeys, seriesOrder } from "./marks";
import { add, type Draw, type Drawn, lineOf, plotted } from "./plotFrame";
import { along, isOfMoments, ROW, spans, spansOf, tint } from "./timeline";
import { axisOf, inWords, nameAxis, namesOf, onAxis, type Placed, placed } from "./describedFigure";

type Look = Described["series"][number]["look"];

const CROWDED = 60;
const WIDEST_BAR = 56;
/** The width of a letter of a row's name, in pixels. */
const LETTER = 5.6;

export function AnyFigure({ figure }: { figure: Described }): JSX.Element {
  const { title, note, series, x, y } = figure;
  const count = series.reduce((sum, each) => sum + each.points.length, 0);
  const names = series.map((each) => each.name).filter(Boolean);
  const pieces = { bars: "bars", spans: "ends of bars", points: "points", lines: "points" }[figure.kind];
  return (
    <Figure
      title={title}
      summary={`${y.label} by ${x.label}, ${count} ${pieces}${names.length > 0 ? `: ${names.join(", ")}` : ""}.`}
      note={note || undefined}
      keys={series.length > 1 ? keysOf(figure) : []}
      table={figure.kind === "spans" ? spansTold(figure) : pointsTold(figure)}
      draw={(width) => drawn(width, figure)}
      of={[figure]}
    />
  );
}

function pointsTold({ series, x, y }: Described): Told {
  return {
    head: [x.label, "Series", y.label, "More"],
    rows: series.flatMap(({ name, points }) =>
      points.map((point) => [onAxis(point.x, x), name, onAxis(point.y, y), point.label]),
    ),
  };
}

/** A row for each bar and each moment, in the order of time. */
function spansTold(figure: Described): Told {
  const { series, x, y } = figure;
  const found = spansOf(placed(figure)).sort((a, b) => a.x - b.x);
  return {
    head: ["From", "To", "What", y.label, "More"],
    rows: found.map((span) => [
      onAxis(span.x, x),
      span.to > span.x ? onAxis(span.to, x) : null,
      series[span.series]!.name,
      onAxis(span.y, y),
      span.words.split("\n")[0] ?? "",
    ]),
  };
}

function keysOf(figure: Described): Key[] {
  const { kind, series } = figure;
  if (kind !== "spans" && series.every(({ look }) => look === "plain"))
    return seriesKeys(seriesOrder(series.map(({ name }) => name)));
  const found = spansOf(placed(figure));
  return series.flatMap(({ name, look }, index) => {
    const moments = isOfMoments(found, index);
    return name === "" || moments === null ? [] : [{ mark: swatch(kind, index, look, moments), words: name }];
  });
}

function swatch(kind: Described["kind"], index: number, look: Look, moments: boolean): JSX.Element {
  if (kind === "lines" && look === "limit") return <path d="M-8,0H8" class="limit" />;
  if (kind !== "spans") return <path d={outline(index, 4.6)} fill={tint(index, look)} />;
  if (moments && look === "quiet") return <path d={crossed(3.2)} class="cross" />;
  if (moments) return <path d={outline(index, 4.6)} fill="var(--ink)" />;
  const thin = look === "quiet" ? 3 : 6;
  return <rect x={-8} y={-thin} width={16} height={2 * thin} rx={2} fill={tint(index, look)} />;
}

function drawn(width: number, figure: Described): Drawn {
  if (figure.kind === "spans") return drawnSpans(width, figure);
  const [points, names] = [placed(figure), namesOf(figure)];
  const on = (axis: "x" | "y"): number[] => figure.limits.flatMap((each) => (each.axis === axis ? [each.value] : []));
  const wide = width >= 560;
  const rows = figure.y.names;
  const begins = isBounded(figure) ? [0] : [];
  const floor = figure.kind === "bars" && figure.y.scale === "linear" ? [0] : [];
  const [across, up] = [points.map((point) => point.x), points.map((point) => point.y)];
  return plotted(
    width,
    wide ? 320 : 280,
    names ? nameAxis(figure.x.label, names, wide ? 12 : 5) : axisOf(figure.x, [...begins, ...across, ...on("x")], wide ? 8 : 4),
    rows.length > 0
      ? nameAxis(figure.y.label, rows, rows.length)
      : axisOf(figure.y, [...up, ...on("y"), ...floor], 5),
    [boundaries(points, figure), figure.kind === "bars" ? bars(points, figure) : marks(points, figure), limits(figure)],
    points,
    leftOf(rows),
  );
}

/** Space for the names of rows. */
function leftOf(rows: string[]): number {
  return Math.max(66, 20 + LETTER * Math.max(...rows.map((name) => name.length)));
}

function drawnSpans(width: number, figure: Described): Drawn {
  const { x, y, limits: lines } = figure;
  const found = spansOf(placed(figure));
  const axis = axisOf(
    x,
    [0, ...found.flatMap((span) => [span.x, span.to]), ...lines.map(({ value }) => value)],
    width >= 560 ? 8 : 4,
  );
  const rows = { ...nameAxis(y.label, y.names, y.names.length), label: "" };
  const perPixel = (axis.domain[1] - axis.domain[0]) / (width - leftOf(y.names));
  const height = 68 + ROW * Math.max(1, y.names.length);
  const draw = [spans(found, figure), limits(figure)];
  return plotted(width, height, axis, rows, draw, along(found, perPixel), leftOf(y.names));
}

function marks(points: Placed[], { kind, series }: Described): Draw {
  return (group, at) => {
    series.forEach(({ look }, index) => {
      const own = points.filter((point) => point.series === index);
      if (kind === "lines" && look === "limit") return; // drawn by boundaries
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

/** Lines that should not be crossed, with what is above them shaded. */
function boundaries(points: Placed[], { kind, series }: Described): Draw {
  return (group, at) => {
    for (const [index, { look }] of series.entries()) {
      const own = points.filter((point) => point.series === index);
      if (kind !== "lines" || look !== "limit" || own.length === 0) continue;
      const corners = own.map((point): [number, number] => [at.x(point.x), at.y(point.y)]);
      const [first, last] = [corners[0]!, corners[corners.length - 1]!];
      const above = `L${at.right},${last[1].toFixed(1)}V${at.top}H${first[0].toFixed(1)}Z`;
      add(group, "path", { d: lineOf(corners) + above, class: "forbidden" });
      add(group, "path", { d: lineOf(corners), class: "limit" });
    }
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

/** Whether a line of it should not be crossed: then it begins with the run, as a time line does. */
export function isBounded({ kind, series }: Described): boolean {
  return kind === "lines" && series.some(({ look }) => look === "limit");
}

function limits(figure: Described): Draw {
  const { kind, limits: lines, x, y } = figure;
  return (group, at) => {
    const level = kind === "spans" ? at.top - 8 : isBounded(figure) ? at.top + 16 : at.bottom - 8;
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
        { x: across + (beyond ? -6 : 6), y: level, "text-anchor": beyond ? "end" : "start", class: "label limit-words" },
        `${label} ${inWords(value, x.unit)}`,
      );
    }
  };
}
