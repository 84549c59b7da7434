/** The window of a log that is on the page: some thousand lines that follow each other, of a log of any size. */

import type { LogLine, LogWindow, UsagePoint } from "../../../types";

/** Lines that are kept on the page. */
export const MOST = 3_000;
/** Bytes of a last line that may still grow, at the most: the server reads no longer ones at once. */
const GROWING = 256 * 1024;
/** Lines of one answer. */
const AT_ONCE = 1_000;

export interface Shown extends LogWindow {
  /** Whether the log goes on below the window. */
  more: boolean;
}

/** A window in place of all that was shown. */
export function fresh(window: LogWindow): Shown {
  return { ...window, more: window.size - window.next > GROWING };
}

/** With the lines below it; the first ones leave, if they are too many. A line that has grown is replaced. */
export function withBelow(shown: Shown, below: LogWindow): Shown {
  const lines = [...shown.lines.filter((line) => line.at < below.start), ...below.lines];
  const kept = lines.slice(-MOST);
  const more = below.lines.length >= AT_ONCE || below.size - below.next > GROWING;
  return { ...below, lines: kept, start: startOf(kept, lines, shown.start), more };
}

/** With the lines above it; the last ones leave, if they are too many. */
export function withAbove(shown: Shown, above: LogWindow): Shown {
  const lines = [...above.lines.filter((line) => line.at < shown.start), ...shown.lines];
  const kept = lines.slice(0, MOST);
  const isCut = kept.length < lines.length;
  return {
    ...above,
    lines: kept,
    next: isCut ? lines[MOST]!.at : shown.next,
    more: isCut || shown.more,
  };
}

function startOf(kept: LogLine[], lines: LogLine[], start: number): number {
  return kept.length < lines.length ? kept[0]!.at : start;
}

/** The times within which the bytes of a log from here on were written: seconds since the record began. */
export function writtenAt(points: UsagePoint[], process: number, at: number): [number, number] | null {
  const size = (i: number): number => points[i]?.logs[String(process)] ?? 0;
  let [low, high] = [0, points.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (size(middle) > at) high = middle;
    else low = middle + 1;
  }
  const until = points[low];
  return until === undefined ? null : [points[low - 1]?.t ?? 0, until.t];
}
