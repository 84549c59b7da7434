import { expect, test } from "vitest";
import type { TradeoffPoint } from "../../types";
import { nearly } from "./Nearly";

function point(label: string, hours: number, usd: number, measured = true): TradeoffPoint {
  const worst = { worst_seconds: 3_600 * hours * 1.3, worst_usd: usd * 1.3, certified: false, chosen: false };
  return { label, series: "a", seconds: 3_600 * hours, usd, ...worst, measured, frontier: false, knee: false };
}

const POINTS = [point("slow", 48, 105), point("fast", 18, 142), point("faster", 17, 160), point("guess", 9, 90, false)];
const ASKED = { goal: "fastest", budget: 150, deadline: null, label: "slow" };

test("the fastest measured one that is expected within the limits", () => {
  expect(nearly(POINTS, ASKED)?.label).toBe("fast");
  expect(nearly(POINTS, { ...ASKED, budget: null })?.label).toBe("faster");
  expect(nearly(POINTS, { ...ASKED, budget: 110 })).toBeNull(); // that is the decision itself
});

test("where nothing can be decided, what is expected to fit is named, too", () => {
  expect(nearly(POINTS, { ...ASKED, budget: 110, label: null })?.label).toBe("slow");
  expect(nearly(POINTS, { ...ASKED, budget: 100, label: null })).toBeNull();
});

test("a little better is not worth a search, and a knee is not one figure", () => {
  expect(nearly([point("slow", 48, 105), point("fast", 47, 110)], ASKED)).toBeNull();
  expect(nearly(POINTS, { ...ASKED, goal: "knee" })).toBeNull();
});
