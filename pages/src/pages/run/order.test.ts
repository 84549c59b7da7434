import { expect, test } from "vitest";
import { inOrder } from "./Expandable";

test("rows are ordered by a column, either way, and what is not known comes last both times", () => {
  const rows = [3, null, 1, 2];
  expect(inOrder(rows, (row) => row, false)).toEqual([1, 2, 3, null]);
  expect(inOrder(rows, (row) => row, true)).toEqual([3, 2, 1, null]);
  expect(rows).toEqual([3, null, 1, 2]);
});
