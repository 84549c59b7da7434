import { describe, expect, test } from "vitest";
import { isWide, spread, ticks, timeTick, timeTicks, usdTick } from "./ticks";

describe("ticks", () => {
  test("are round, inside the range, and no more than asked for", () => {
    expect(ticks([0, 106], 5)).toEqual([0, 25, 50, 75, 100]);
    expect(ticks([400, 4000], 7, true)).toEqual([500, 1000, 2000]);
    for (const [low, high] of [
      [0.0001, 0.003],
      [3, 17],
      [90, 12000],
      [1, 1.3],
    ] as [number, number][]) {
      for (const log of [false, true]) {
        const found = ticks([low, high], 6, log);
        expect(found.length).toBeGreaterThan(0);
        expect(found.length).toBeLessThanOrEqual(7);
        for (const tick of found)
          expect(tick).toSatisfy((value: number) => value >= low * 0.999 && value <= high * 1.001);
      }
    }
  });

  test("of time stand where a clock is read", () => {
    expect(timeTicks([0, 7200], 4)).toEqual([0, 1800, 3600, 5400, 7200]);
    expect(timeTicks([20_000, 700_000], 8, true).map(timeTick)).toEqual(["6 h", "12 h", "1 d", "2 d", "5 d"]);
    expect(timeTick(0.25)).toBe("250 ms");
    expect(timeTick(129_600)).toBe("1.5 d");
  });

  test("of money are short", () => {
    expect([0, 0.0035, 2.5, 1500, 25_000].map(usdTick)).toEqual(["$0", "$0.0035", "$2.5", "$1,500", "$25k"]);
  });

  test("a domain holds its values with air, and never crosses zero by itself", () => {
    expect(spread([0, 10], false)).toEqual([0, 10.6]);
    const [low, high] = spread([2, 200], true);
    expect(low).toBeLessThan(2);
    expect(high).toBeGreaterThan(200);
    expect(isWide(1, 10)).toBe(false);
    expect(isWide(1, 13)).toBe(true);
  });
});
