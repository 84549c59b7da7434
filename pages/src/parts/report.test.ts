import { afterAll, expect, test, vi } from "vitest";

afterAll(() => vi.resetModules());

test("a live page has no answer of its own; a report answers about its run, and about nothing else", async () => {
  const { answered, inReport, openReport } = await import("./report");
  expect(inReport()).toBe(false);
  expect(answered("/runs/a%20b")).toBeNull();
  openReport({ run: "a b", written_at: "2026-11-17T00:00:00+00:00", answers: { "": { one: 1 }, "/ledger": { rows: [] } } });
  expect(inReport()).toBe(true);
  expect(answered("/runs/a%20b")).toEqual({ one: 1 });
  expect(answered("/runs/a%20b/ledger")).toEqual({ rows: [] });
  expect(answered("/runs/a%20b/logs")).toBeNull();
  expect(answered("/runs/other")).toBeNull();
});

test("in a report nothing is fetched: what it has is given at once, and the rest is refused", async () => {
  const fetched = vi.spyOn(globalThis, "fetch");
  const { get } = await import("../api");
  await expect(get("/runs/a%20b")).resolves.toEqual({ one: 1 });
  await expect(get("/runs")).rejects.toThrow("It is not part of this report.");
  expect(fetched).not.toHaveBeenCalled();
});
