import { describe, expect, test } from "vitest";
import type { View } from "../../types";
import { canContinue, commandOf, limitsWords, primaryStep, suggestedLimits } from "./Continue";

const view = (status: string, more: object = {}): View =>
  ({ summary: { run: "a-1", kind: "train", status, driven: false, owner: "ron", ...more }, document: {} }) as View;
const ron = { role: "runner", name: "ron" } as const;

test("limits are named as people say them", () => {
  expect(limitsWords({ budget: "165" })).toBe("$165");
  expect(limitsWords({ budget: "96.2", deadline: "21600s" })).toBe("$96.20 and 6 h");
  expect(limitsWords({ goal: "cheapest", budget: "none" })).toBe("cheapest, no budget");
});

test("a run goes on itself where it can, and only for its owner; else a new one begins", () => {
  expect(canContinue(view("infeasible"), { budget: "165" }, ron)).toBe(true);
  expect(canContinue(view("finished"), { budget: "165" }, ron)).toBe(false);
  expect(canContinue(view("decided"), { goal: "cheapest" }, ron)).toBe(false);
  expect(canContinue(view("decided"), { budget: "165" }, { role: "runner", name: "rita" })).toBe(false);
  expect(canContinue(view("decided", { driven: true }), { budget: "165" }, ron)).toBe(false);
});

test("a run that would begin anew is offered a search first; one that continues, its launch", () => {
  expect(primaryStep(true, false)).toBe("search");
  expect(primaryStep(true, true)).toBe("launch");
  expect(primaryStep(false, true)).toBe("launch");
});

test("the command says the same", () => {
  expect(commandOf(view("infeasible"), { budget: "165" }, false, true).join(" ")).toBe("resume a-1 --budget 165 --decide-only");
  expect(commandOf(view("finished"), { budget: "165" }, true, false).join(" ")).toBe("train JOB.yaml --budget 165 -y");
  expect(commandOf(view("decided"), {}, true, true)).toEqual(["launch", "a-1"]);
});

describe("what would be enough", () => {
  const ways = [
    { budget_usd: 96.1903, deadline_s: null, label: "2 x g" },
    { budget_usd: null, deadline_s: 3601, label: null },
  ];
  const began = "2026-11-19T12:00:00Z";
  const infeasible = (provenance: string): View => ({
    ...view("infeasible", { provenance, started_at: began, elapsed_s: 60 }),
    document: { decision: { relaxations: ways } },
  }) as unknown as View;
  const limits = (provenance: string, own: boolean, hours: number): object[] =>
    suggestedLimits(infeasible(provenance), own, Date.parse(began) + hours * 3_600_000).map((way) => way.limits);

  test("is rounded up", () => {
    expect(limits("simulated", true, 5)).toEqual([{ budget: "96.20" }, { deadline: "61m" }]);
  });

  test("is a little more for a search that begins anew", () => {
    expect(limits("simulated", false, 5)).toEqual([{ budget: "102.93" }, { deadline: "65m" }]);
  });

  test("counts the time that has passed since, where time is real", () => {
    expect(limits("live", true, 1)).toEqual([{ budget: "96.20" }, { deadline: "120m" }]);
    expect(limits("live", false, 1)).toEqual([{ budget: "102.93" }, { deadline: "65m" }]);
  });
});
