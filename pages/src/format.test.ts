import { describe, expect, it } from "vitest";
import { bytes, count, duration, moment, percent, plural, rate, significant, usd, whole } from "./format";

// What mlcd/core/units.py says of the same numbers.
describe("a page writes numbers as the command line does", () => {
  it.each([
    [0, "$0.00"],
    [0.00001, "$0.00001"],
    [0.0034, "$0.0034"],
    [0.125, "$0.12"],
    [0.375, "$0.38"],
    [2.675, "$2.67"],
    [1234567.891, "$1,234,567.89"],
    [-12.5, "$-12.50"],
    [999.995, "$1,000.00"],
  ])("money %d", (value, words) => expect(usd(value)).toBe(words));

  it.each([
    [0, "0 s"],
    [0.34, "0.34 s"],
    [8.4, "8 s"],
    [59.6, "1 m"],
    [720, "12 m"],
    [33600, "9 h 20 m"],
    [100800, "1 d 4 h"],
    [3599.6, "1 h"],
    [86399, "1 d"],
    [Infinity, "forever"],
  ])("a duration of %d s", (value, words) => expect(duration(value)).toBe(words));

  it.each([
    [1240, "1,240"],
    [82.14, "82.1"],
    [0.000376, "0.000376"],
    [999.5, "1,000"],
    [774.5, "774"],
    [0.0000376, "3.76e-05"],
  ])("a rate of %d", (value, words) => expect(rate(value)).toBe(words));

  it.each([
    [60e6, "60M"],
    [1.2e9, "1.2B"],
    [950, "950"],
    [999_600, "1M"],
    [25_600_000, "25.6M"],
  ])("a count of %d", (value, words) => expect(count(value)).toBe(words));

  it("of other things", () => {
    expect(significant(1234.5, 2)).toBe("1.2e+03");
    expect(whole(12_400)).toBe("12,400");
    expect(percent(0.6149)).toBe("61 %");
    expect(percent(0.004)).toBe("0.4 %");
    expect(bytes(4_321_000)).toBe("4.32 MB");
    expect(plural(1, "run")).toBe("1 run");
    expect(plural(1_200, "run")).toBe("1,200 runs");
    expect(moment("2025-11-16T05:42:00Z", new Date("2026-11-16T12:00:00Z"))).toMatch(/2025$/);
  });
});
