import { expect, test } from "vitest";
import { type Row, toCsv } from "./csv";

const RUN: Row = {
  run: "a-1",
  job: "a",
  kind: "train",
  status: "finished",
  owner: '=HYPERLINK("x")',
  team: null,
  started_at: "2026-11-16T09:00:00Z",
  on: "simulated",
  provenance: "simulated",
  goal_words: "fastest within $100.00",
  chosen: "2 x g6.xlarge, batch 64",
  tried: 12,
  elapsed_s: 1,
  spent_usd: 84.02,
  budget_usd: 100,
  project: null,
  tags: ["a", "b"],
};

test("a spreadsheet reads back what a run is, and computes nothing of it", () => {
  const [head, line, end] = toCsv([RUN]).split("\r\n");
  expect(head?.split(",")).toEqual(Object.keys(RUN));
  expect(line).toBe(
    `a-1,a,train,finished,"'=HYPERLINK(""x"")",,2026-11-16T09:00:00Z,simulated,simulated,` +
      `fastest within $100.00,"2 x g6.xlarge, batch 64",12,1,84.02,100,,a b`,
  );
  expect(end).toBe("");
});
