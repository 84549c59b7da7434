import { expect, test } from "vitest";
import type { Figure } from "../types";
import { axisOf, inWords, namesOf, onAxis, placed } from "./describedFigure";

const axis = { label: "cost", unit: "usd", scale: "linear" as const, names: [] };
const figure = (points: Figure["series"][number]["points"], scale: "linear" | "log" = "linear"): Figure => ({
  title: "A",
  kind: "points",
  x: { label: "time", unit: "s", scale, names: [] },
  y: { ...axis, scale },
  series: [{ name: "one", points, look: "plain" }],
  limits: [],
  note: "",
});

test("values carry their unit", () => {
  expect(inWords(90, "s")).toBe("1 m 30 s");
  expect(inWords(2, "usd")).toBe("$2.00");
  expect(inWords(0.1234, "GB")).toBe("0.123 GB");
  expect([inWords(null, ""), inWords(true, ""), inWords("a", "s")]).toEqual(["–", "yes", "a"]);
});

test("what is not known, or has no logarithm, is not drawn", () => {
  const points = [
    { x: 1, y: 2, label: "" },
    { x: 2, y: null, label: "" },
    { x: 0, y: 3, label: "" },
    { x: 3, y: -1, label: "" },
  ];
  expect(placed(figure(points)).map(({ x }) => x)).toEqual([1, 0, 3]);
  expect(placed(figure(points, "log")).map(({ x }) => x)).toEqual([1]);
});

test("bars stand on the names of all series", () => {
  const named = figure([
    { x: "b", y: 1, label: "" },
    { x: "a", y: 2, label: "" },
  ]);
  named.series.push({ name: "two", points: [{ x: "a", y: 3, label: "" }], look: "plain" });
  expect(namesOf(named)).toEqual(["b", "a"]);
  expect(placed(named).map(({ series, x }) => [series, x])).toEqual([
    [0, 1],
    [0, 2],
    [1, 2],
  ]);
  expect(namesOf(figure([{ x: 1, y: 1, label: "" }]))).toBeNull();
});

test("an axis of names tells the name that stands there", () => {
  const named = { ...axis, names: ["nothing", "spot"] };
  expect([onAxis(2, named), onAxis(null, named), onAxis(2, axis)]).toEqual(["spot", "–", "$2.00"]);
});

test("an axis holds all its values", () => {
  const { domain, ticks } = axisOf(axis, [1, 50], 5);
  expect(domain[0]).toBeLessThanOrEqual(1);
  expect(domain[1]).toBeGreaterThanOrEqual(50);
  expect(ticks.length).toBeGreaterThan(1);
});
