/** Money, durations and rates as mlcd/core/units.py writes them, so that a page and the command line say the same. */

/** As Python's format(value, ".{places}f"): an exact tie goes to the even digit, which toFixed does not do. */
function fixed(value: number, places: number): string {
  const scaled = Math.abs(value) * 10 ** places;
  const tie = scaled % 1 === 0.5 && Number.isInteger(value * 2 ** (places + 1));
  if (!tie) return value.toFixed(places);
  const even = 2 * Math.round(scaled / 2);
  return (Math.sign(value) * (even / 10 ** places)).toFixed(places);
}

/** As Python's format(value, ".{digits}g"). */
export function significant(value: number, digits = 3): string {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const [mantissa, power] = value.toExponential(digits - 1).split("e") as [string, string];
  const exponent = Number(power);
  if (exponent < -4 || exponent >= digits) {
    const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
    return `${short}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  const written = fixed(value, digits - 1 - exponent);
  return written.includes(".") ? written.replace(/\.?0+$/, "") : written;
}

function grouped(written: string): string {
  const [whole, rest] = written.split(".") as [string, string | undefined];
  const thousands = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? thousands : `${thousands}.${rest}`;
}

/** Two decimals; more for less than a cent, so that a cheap probe is not shown as free. */
export function usd(value: number): string {
  const size = Math.abs(value);
  if (size > 0 && size < 0.00005) return `$${value.toFixed(-Math.floor(Math.log10(size)))}`;
  if (size > 0 && size < 0.01) return `$${fixed(value, 4)}`;
  return `$${grouped(fixed(value, 2))}`;
}

function round(value: number): number {
  return Number(fixed(value, 0));
}

/** The two largest units that say something: '9 h 20 m', '1 d 4 h', '12 m', '8 s'. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "forever";
  let total = round(seconds);
  if (total < 60) return seconds > 0 && seconds < 1 ? `${significant(seconds, 2)} s` : `${total} s`;
  if (total >= 3_600) total = round(total / 60) * 60;
  if (total >= 86_400) total = round(total / 3_600) * 3_600;
  const parts: [number, string][] = [
    [Math.floor(total / 86_400), "d"],
    [Math.floor(total / 3_600) % 24, "h"],
    [Math.floor(total / 60) % 60, "m"],
    [total % 60, "s"],
  ];
  const shown = parts.filter(([value]) => value > 0).slice(0, 2);
  return shown.map(([value, unit]) => `${value} ${unit}`).join(" ");
}

/** Three significant digits: '1,240', '82.1', '0.000376'. */
export function rate(perSecond: number): string {
  return perSecond >= 999.5 ? grouped(fixed(perSecond, 0)) : significant(perSecond);
}

/** '60M', '1.2B', '950'. */
export function count(value: number): string {
  const sizes: [number, string][] = [
    [1e15, "P"],
    [1e12, "T"],
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "k"],
  ];
  for (const [size, letter] of sizes) if (value >= 0.9995 * size) return `${significant(value / size)}${letter}`;
  return significant(value);
}

/** A whole number with its thousands apart: '12,400'. */
export function whole(value: number): string {
  return grouped(fixed(value, 0));
}

export function percent(share: number): string {
  const value = 100 * share;
  return `${value > 0 && value < 10 ? significant(value, 2) : round(value)} %`;
}

export function milliseconds(value: number): string {
  return value >= 1_000 ? `${significant(value / 1_000)} s` : `${significant(value)} ms`;
}

export function bytes(size: number): string {
  const units = ["bytes", "kB", "MB", "GB"];
  let value = size;
  let unit = 0;
  for (; value >= 999.5 && unit < units.length - 1; unit++) value /= 1_000;
  return `${significant(value)} ${units[unit]}`;
}

/** '1 run', '3 runs'. */
export function plural(n: number, word: string): string {
  return `${whole(n)} ${word}${n === 1 ? "" : "s"}`;
}

const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const YEAR = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const MONTH = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric", timeZone: "UTC" });

/** In the reader's time zone: '05:42' of today, '16 Nov 05:42' of this year, '16 Nov 2025' before. */
export function moment(iso: string, now: Date = new Date()): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  if (at.toDateString() === now.toDateString()) return TIME.format(at);
  return at.getFullYear() === now.getFullYear() ? `${DAY.format(at)} ${TIME.format(at)}` : YEAR.format(at);
}

const INSTANT = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeStyle: "short", timeZone: "UTC" });

/** The same on every screen and on paper: '16 November 2026 at 05:42 UTC'. */
export function instant(iso: string): string {
  return `${INSTANT.format(new Date(iso))} UTC`;
}

/** '2026-11' -> 'Nov 2026'. */
export function month(written: string): string {
  return MONTH.format(new Date(`${written}-01T00:00:00Z`));
}

/** '2026-12-01' -> '1 Dec'. */
export function day(date: string): string {
  return DATE.format(new Date(date));
}
