import type { JSX } from "preact";
import { usd } from "../../format";
import type { Budget, Per } from "../../types";

const TIMES: Record<Per, string> = { total: "in all", month: "a month" };

/** '$50' -> 50, '' -> no limit; undefined: neither. */
export function dollars(written: string): number | null | undefined {
  const plain = written.replace(/[$,\s]/g, "");
  if (plain === "" || plain === "none") return null;
  const value = Number(plain);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** '$80.00 of $500.00 this month'. */
export function useWords({ budget_usd, budget_per, spent_usd }: Budget): string {
  if (budget_usd === null) return `${usd(spent_usd)}, no limit`;
  return `${usd(spent_usd)} of ${usd(budget_usd)}${budget_per === "month" ? " this month" : ""}`;
}

/** '$40.00 more claimed by runs'; '' if none can spend anything. */
export function claimWords({ claimed_usd }: Budget): string {
  if (claimed_usd === 0) return "";
  return `${claimed_usd === null ? "an unlimited amount is" : `${usd(claimed_usd)} more`} claimed by runs`;
}

interface PerSelectProps {
  value: Per;
  onChoose: (per: Per) => void;
  [more: string]: unknown;
}

/** The period of a budget. */
export function PerSelect({ value, onChoose, ...rest }: PerSelectProps): JSX.Element {
  return (
    <select {...rest} class="per" value={value} onChange={(event) => onChoose(event.currentTarget.value as Per)}>
      {Object.entries(TIMES).map(([per, words]) => (
        <option key={per} value={per}>
          {words}
        </option>
      ))}
    </select>
  );
}
