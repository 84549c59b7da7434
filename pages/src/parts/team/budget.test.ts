import { expect, test } from "vitest";
import { claimWords, dollars, useWords } from "./Budget";

const MONTHLY = { budget_usd: 500, budget_per: "month", spent_usd: 80, claimed_usd: 40 } as const;

test("a budget is told with what was spent in its time, and what runs can still spend", () => {
  expect(useWords(MONTHLY)).toBe("$80.00 of $500.00 this month");
  expect(useWords({ ...MONTHLY, budget_per: "total" })).toBe("$80.00 of $500.00");
  expect(useWords({ ...MONTHLY, budget_usd: null })).toBe("$80.00, no limit");
  expect(claimWords(MONTHLY)).toBe("$40.00 more claimed by runs");
  expect(claimWords({ ...MONTHLY, claimed_usd: null })).toBe("an unlimited amount is claimed by runs");
  expect(claimWords({ ...MONTHLY, claimed_usd: 0 })).toBe("");
});

test("dollars are read as people write them", () => {
  expect([" $1,200 ", "0", "", "none"].map(dollars)).toEqual([1200, 0, null, null]);
  expect(["-1", "much", "1e999"].map(dollars)).toEqual([undefined, undefined, undefined]);
});
