import { describe, expect, test } from "vitest";
import type { Headway } from "../../types";
import { facts, spoken } from "./progressFacts";

const NOW = new Date(2026, 10, 16, 12, 0, 30);
const RUN: Headway = {
  label: "resnet-1-4",
  purpose: "run",
  where: "2 x g6.xlarge",
  at: new Date(2026, 10, 16, 12, 0, 0).toISOString(),
  elapsed_s: 7_200,
  usd: 3.2,
  words: "",
  share: 0.25,
  rate: 640.4,
  unit: "samples/s",
  left_s: 21_600,
};
const PROBE: Headway = { ...RUN, purpose: "probe", share: null, rate: null, left_s: null };

describe("a job under way", () => {
  test("is told by its share, its rate, when it began and will end, and its price", () => {
    expect(facts(RUN, 12.5, NOW)).toEqual([
      { name: "Done", value: "25 %" },
      { name: "Rate", value: "640 samples/s" },
      { name: "Since", value: "10:00 (2 h)" },
      { name: "Until about", value: "18:00 (in 6 h)" },
      { name: "Cost so far", value: "$3.20 of at most $12.50" },
    ]);
    expect(spoken(RUN)).toBe("25 % done, about 6 h left");
  });

  test("of which little is known yet says no more than that", () => {
    expect(facts(PROBE, null, NOW).map((fact) => fact.name)).toEqual(["Since", "Cost so far"]);
    expect(spoken(PROBE)).toBe("measuring until the rate is known");
  });

  test("is not done before it is", () => {
    expect([0.00018, 0.999, 1].map((share) => facts({ ...RUN, share }, null, NOW)[0]?.value)).toEqual([
      "0 %",
      "99 %",
      "100 %",
    ]);
  });

  test("that does more than its stated work says so", () => {
    expect(facts({ ...RUN, share: 4.2, left_s: null }, null, NOW)[0]?.value).toBe("420 % of its stated work");
    expect(spoken({ ...RUN, share: 4.2, left_s: null })).toBe("420 % of its stated work done");
  });

  test("that ends on another day says which", () => {
    expect(facts({ ...RUN, left_s: 2 * 86_400 }, null, NOW)[3]?.value).toBe("18 Nov 12:00 (in 2 d)");
  });
});
