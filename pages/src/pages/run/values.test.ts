import { describe, expect, test } from "vitest";
import { durationWord, fromStep, parseDuration, parseMs, parseRate, parseUsd, STEPS, toStep } from "./values";

describe("what people type", () => {
  test("dollars, with or without a sign", () => {
    expect(["$1,200", "1200", "1.2k", " 0.05 "].map(parseUsd)).toEqual([1200, 1200, 1200, 0.05]);
    expect(["", "abc", "-5", "0", "1.2.3"].map(parseUsd)).toEqual([null, null, null, null, null]);
  });

  test("durations, in one unit or several", () => {
    expect(["6h", "1d 4h", "90 m", "2.5 h", "3"].map(parseDuration)).toEqual([21_600, 100_800, 5_400, 9_000, 10_800]);
    expect([1_209_600, 100_800, 5_400, 61].map(durationWord)).toEqual(["14d", "28h", "90m", "61s"]);
    expect(["", "soon", "0", "4x"].map(parseDuration)).toEqual([null, null, null, null]);
  });

  test("latencies and rates", () => {
    expect(["30ms", "1.5 s", "20", "x"].map(parseMs)).toEqual([30, 1500, 20, null]);
    expect(["1,200", "0", "many"].map(parseRate)).toEqual([1200, null, null]);
  });
});

describe("a slider", () => {
  test("gives back what it was set to, to a thousandth of its way", () => {
    for (const range of [
      [10, 20],
      [1, 5000],
      [0.01, 3],
    ] as [number, number][]) {
      for (let step = 0; step <= STEPS; step += 37) expect(toStep(fromStep(step, range), range)).toBe(step);
      expect(fromStep(0, range)).toBeCloseTo(range[0]);
      expect(fromStep(STEPS, range)).toBeCloseTo(range[1]);
    }
  });

  test("stays at its end for what lies beyond it", () => {
    expect(toStep(1e9, [1, 100])).toBe(STEPS);
    expect(toStep(0.001, [1, 100])).toBe(0);
  });
});
