/** Parses typed limits, and maps values to a slider. */

const UNITS: Record<string, number> = { s: 1, m: 60, min: 60, h: 3600, d: 86400, w: 604800 };

/** '$1,200', '1200', '1.2k' -> dollars; null if it is not an amount. */
export function parseUsd(text: string): number | null {
  const found = /^\s*\$?\s*(\d[\d,_]*(?:\.\d+)?|\.\d+)\s*(k?)\s*$/i.exec(text);
  const value = found ? Number(found[1]!.replace(/[,_]/g, "")) * (found[2] ? 1000 : 1) : NaN;
  return value > 0 && Number.isFinite(value) ? value : null;
}

/** '6h', '1d 4h', '90 m', '2.5 h' -> seconds; a bare number is hours. */
export function parseDuration(text: string): number | null {
  const bare = /^\s*(\d+(?:\.\d+)?)\s*$/.exec(text);
  if (bare) return Number(bare[1]) > 0 ? Number(bare[1]) * 3600 : null;
  if (!/^(?:\s*\d+(?:\.\d+)?\s*(?:min|[smhdw])\s*)+$/i.test(text)) return null;
  let total = 0;
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)\s*(min|[smhdw])/gi))
    total += Number(number) * UNITS[unit!.toLowerCase()]!;
  return total > 0 ? total : null;
}

/** An exact duration in the largest unit that it is whole in, for a command: 1209600 -> '14d'. */
export function durationWord(seconds: number): string {
  const [unit, size] = Object.entries({ d: 86400, h: 3600, m: 60 }).find(([, size]) => seconds % size === 0) ?? ["s", 1];
  return `${seconds / size}${unit}`;
}

/** '30 ms', '1.5 s', '30' -> milliseconds. */
export function parseMs(text: string): number | null {
  const found = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|)\s*$/i.exec(text);
  const value = found ? Number(found[1]) * (found[2]!.toLowerCase() === "s" ? 1000 : 1) : NaN;
  return value > 0 ? value : null;
}

export function parseRate(text: string): number | null {
  const value = Number(text.replace(/,/g, "").trim());
  return value > 0 && Number.isFinite(value) ? value : null;
}

export const STEPS = 1000;
/** From this factor on, a slider is logarithmic. */
const WIDE = 8;

/** A value's position on a slider of a thousand steps. */
export function toStep(value: number, [low, high]: [number, number]): number {
  if (high <= low) return STEPS;
  const share = isLog(low, high)
    ? Math.log(Math.max(value, low) / low) / Math.log(high / low)
    : (value - low) / (high - low);
  return Math.round(STEPS * Math.min(1, Math.max(0, share)));
}

export function fromStep(step: number, [low, high]: [number, number]): number {
  const share = step / STEPS;
  return isLog(low, high) ? low * (high / low) ** share : low + share * (high - low);
}

function isLog(low: number, high: number): boolean {
  return low > 0 && high / low > WIDE;
}

/** Three digits are enough for a dragged limit; keys need four. */
export function rounded(value: number, digits = 3): number {
  return Number(value.toPrecision(digits));
}
