/** The progress of a running job in words. */

import { duration, moment, rate, usd } from "../../format";
import type { Headway } from "../../types";

export interface Fact {
  name: string;
  value: string;
}

/** Share, rate, start, expected end and cost; `reserved`: the most that it may cost. */
export function facts(of: Headway, reserved: number | null, now: Date = new Date()): Fact[] {
  const at = Date.parse(of.at);
  const clock = (seconds: number): string => moment(new Date(at + 1_000 * seconds).toISOString(), now);
  return [
    { name: "Done", value: of.share === null ? "" : whole(of.share) },
    { name: "Rate", value: of.rate === null ? "" : `${rate(of.rate)} ${of.unit}` },
    { name: "Since", value: `${clock(-of.elapsed_s)} (${duration(of.elapsed_s)})` },
    { name: "Until about", value: of.left_s === null ? "" : `${clock(of.left_s)} (in ${duration(of.left_s)})` },
    { name: "Cost so far", value: reserved === null ? usd(of.usd) : `${usd(of.usd)} of at most ${usd(reserved)}` },
  ].filter((fact) => fact.value !== "");
}

/** The same in one sentence, for screen readers. */
export function spoken(of: Headway): string {
  const parts = [
    of.share === null ? "measuring until the rate is known" : `${whole(of.share)} done`,
    of.left_s === null ? "" : `about ${duration(of.left_s)} left`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** Rounded down: 99.9 % is not 100 %. */
function whole(share: number): string {
  return `${Math.floor(100 * share)} %${share > 1 ? " of its stated work" : ""}`;
}
