/** Positions and labels of an axis's ticks. */

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;

const TIME_STEPS = [
  0.01,
  0.02,
  0.05,
  0.1,
  0.2,
  0.5,
  1,
  2,
  5,
  10,
  15,
  30,
  ...[1, 2, 5, 10, 15, 30].map((m) => m * MINUTE),
  ...[1, 2, 3, 6, 12].map((h) => h * HOUR),
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((d) => d * DAY),
];

/** A range is wide, and drawn by its logarithm, from this factor on. */
const WIDE = 12;

export function isWide(low: number, high: number): boolean {
  return low > 0 && high / low > WIDE;
}

/** From a little below the least to a little above the most. */
export function spread(values: number[], log: boolean, share = 0.06): [number, number] {
  const found = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  if (found.length === 0) return log ? [1, 10] : [0, 1];
  const low = Math.min(...found);
  const high = Math.max(...found);
  if (log) {
    const air = Math.max((high / low) ** share, 1.06);
    return [low / air, high * air];
  }
  const air = share * (high - low) || 0.1 * Math.abs(high) || 1;
  return [low >= 0 ? Math.max(0, low - air) : low - air, high + air];
}

/** Round numbers; by 1, 2 and 5 on a logarithmic axis. */
export function ticks([low, high]: [number, number], most: number, log = false): number[] {
  if (!log) return steps(low, high, roundStep((high - low) / most));
  const all = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const digit of [1, 2, 5]) all.push(Number((digit * 10 ** power).toPrecision(3)));
  }
  const within = all.filter((value) => value >= low && value <= high);
  if (within.length < 3) return ticks([low, high], most);
  return within.length <= most
    ? within
    : thinned(within, most, (value) => /^10*$/.test(String(value).replace("0.", "").replace(/^0+/, "")));
}

/** Seconds at which a clock is read: minutes, hours, days. */
export function timeTicks([low, high]: [number, number], most: number, log = false): number[] {
  if (log) {
    const within = TIME_STEPS.filter((step) => step >= low && step <= high);
    if (within.length >= 3) return within.length <= most ? within : everyNth(within, most);
  }
  const wanted = (high - low) / most;
  return steps(low, high, TIME_STEPS.find((step) => step >= wanted) ?? roundStep(wanted / DAY) * DAY);
}

export function timeTick(seconds: number): string {
  if (seconds === 0) return "0";
  for (const [size, unit] of [
    [DAY, "d"],
    [HOUR, "h"],
    [MINUTE, "m"],
  ] as const) {
    if (seconds >= size) return `${trimmed(seconds / size)} ${unit}`;
  }
  return seconds >= 1 ? `${trimmed(seconds)} s` : `${trimmed(seconds * 1000)} ms`;
}

export function usdTick(usd: number): string {
  if (usd === 0) return "$0";
  if (usd >= 10_000) return `$${trimmed(usd / 1000)}k`;
  return usd >= 1 ? `$${usd.toLocaleString("en-US", { maximumFractionDigits: 2 })}` : `$${Number(usd.toPrecision(3))}`;
}

export function rateTick(rate: number): string {
  if (rate >= 1_000_000) return `${trimmed(rate / 1_000_000)}M`;
  if (rate >= 10_000) return `${trimmed(rate / 1000)}k`;
  return rate >= 1 ? rate.toLocaleString("en-US", { maximumFractionDigits: 1 }) : String(Number(rate.toPrecision(2)));
}

/** 21 ms, 1.5 s. */
export function msTick(ms: number): string {
  return ms >= 1000 ? `${trimmed(ms / 1000)} s` : ms >= 1 ? `${trimmed(ms)} ms` : `${trimmed(ms * 1000)} µs`;
}

function trimmed(value: number): string {
  return String(Number(value.toPrecision(3)));
}

function roundStep(wanted: number): number {
  const power = 10 ** Math.floor(Math.log10(wanted || 1));
  return ([1, 2, 2.5, 5, 10].find((digit) => digit * power >= wanted * 0.999) ?? 10) * power;
}

function steps(low: number, high: number, step: number): number[] {
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-12); i++)
    found.push(Number((i * step).toPrecision(12)));
  return found;
}

function thinned(values: number[], most: number, strong: (value: number) => boolean): number[] {
  const kept = values.filter(strong);
  return kept.length >= 2 && kept.length <= most ? kept : everyNth(values, most);
}

function everyNth(values: number[], most: number): number[] {
  const every = Math.ceil(values.length / most);
  return values.filter((_, i) => i % every === 0);
}
