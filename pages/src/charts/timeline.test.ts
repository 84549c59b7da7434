import { expect, test } from "vitest";
import { along, isOfMoments, type Span, spansOf } from "./timeline";

const point = (series: number, piece: number, x: number) => ({ series, piece, x, y: 1, words: "" });
const ends = ({ series, x, to }: Span) => [series, x, to];

test("each piece of a series is a bar, and a single point a moment", () => {
  const found = spansOf([point(0, 0, 10), point(0, 0, 30), point(0, 1, 50), point(0, 1, 60), point(1, 0, 30)]);
  expect(found.map(ends)).toEqual([
    [0, 10, 30],
    [0, 50, 60],
    [1, 30, 30],
  ]);
  expect([isOfMoments(found, 0), isOfMoments(found, 1), isOfMoments(found, 2)]).toEqual([false, true, null]);
});

test("a pointer finds a bar all along it", () => {
  const found = spansOf([point(0, 0, 0), point(0, 0, 100), point(0, 1, 200)]);
  expect(along(found, 1).map(({ x }) => x)).toEqual([0, 20, 40, 60, 80, 100, 200]);
});
