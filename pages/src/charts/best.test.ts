import { expect, test } from "vitest";
import type { Trial } from "../types";
import { best } from "./BestSoFar";

function point(number: number, value: number, keeps: boolean): { trial: Trial; value: number } {
  return { trial: { number, keeps } as unknown as Trial, value };
}

test("the best so far never gets worse, and only what keeps all that is asked counts", () => {
  const found = best([point(1, 5, true), point(2, 9, false), point(3, 4, true), point(4, 7, true), point(5, 7, true)]);
  expect(found.map(({ trial }) => trial.number)).toEqual([1, 4]);
  expect(best([point(1, 5, false)])).toEqual([]);
});
