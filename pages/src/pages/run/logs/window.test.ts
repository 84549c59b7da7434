import { describe, expect, test } from "vitest";
import type { LogWindow, UsagePoint } from "../../../types";
import { fresh, MOST, withAbove, withBelow, writtenAt } from "./window";

/** Lines of ten bytes each, `first` to `last`, of a log of a hundred thousand lines. */
function lines(first: number, last: number, more: Partial<LogWindow> = {}): LogWindow {
  const found = Array.from({ length: last - first }, (_, i) => ({ at: 10 * (first + i), text: `${first + i}`, rank: null, cut: 0 }));
  return { launch: 1, lines: found, start: 10 * first, next: 10 * last, size: 1_000_000, done: false, ...more };
}

describe("the window of a log", () => {
  test("grows at its end, where a line that was not complete is replaced", () => {
    const shown = fresh(lines(0, 3, { next: 20, size: 25 }));
    const grown = withBelow(shown, lines(2, 5, { size: 50 }));
    expect(grown.lines.map((line) => line.at)).toEqual([0, 10, 20, 30, 40]);
    expect([grown.start, grown.next, grown.more]).toEqual([0, 50, false]);
  });

  test("never holds more than some thousand lines, and knows where it begins and ends", () => {
    let shown = fresh(lines(50_000, 51_000));
    expect(shown.more).toBe(true);
    for (let at = 51_000; at < 60_000; at += 1_000) shown = withBelow(shown, lines(at, at + 1_000));
    expect([shown.lines.length, shown.start, shown.next, shown.more]).toEqual([MOST, 570_000, 600_000, true]);
    for (let at = 57_000; at > 50_000; at -= 1_000) shown = withAbove(shown, lines(at - 1_000, at));
    expect([shown.lines.length, shown.start, shown.next, shown.more]).toEqual([MOST, 500_000, 530_000, true]);
    expect(shown.lines[0]!.text).toBe("50000");
  });

  test("knows when a line was written, as far as it was recorded", () => {
    const point = (t: number, size: number): UsagePoint => ({ t, cpu: [], memory: [], peak: [], gpu: [], gpu_memory: [], logs: { 0: size } });
    const points = [point(1, 0), point(2, 100), point(3, 100), point(4, 250)];
    expect([0, 99, 100, 249, 250].map((at) => writtenAt(points, 0, at))).toEqual([[1, 2], [1, 2], [3, 4], [3, 4], null]);
    expect(writtenAt([], 0, 0)).toBeNull();
    expect(writtenAt(points, 1, 0)).toBeNull();
  });
});
