/** The result of a check: what would run, and what it may cost. */

import type { JSX } from "preact";
import { duration, plural, usd } from "../../format";
import type { Checked, Me } from "../../types";
import { useMe } from "../me";

const MOST_TYPES = 8;

export function Outcome({ checked }: { checked: Checked }): JSX.Element {
  const more = checked.types.length - MOST_TYPES;
  const choices = checked.configurations ?? checked.ahead?.configurations ?? null;
  const refused = overBudget(checked);
  return (
    <div class={refused ? "outcome refused" : "outcome"} role="status">
      <h2>
        {checked.job} {refused ? "would be refused" : "can start"}
      </h2>
      {refused && <p class="field-error">{refused}</p>}
      <dl>
        <dt>Goal</dt>
        <dd>{checked.goal_words}</dd>
        <dt>Where</dt>
        <dd>{checked.on}</dd>
        <dt>Choices</dt>
        <dd>
          {choices === null ? "known only after probing" : plural(choices, "configuration")}
          {checked.types.length > 0 && ` of ${plural(checked.types.length, "type")}`}
          {checked.types.length > 0 && (
            <span class="under">
              {checked.types.slice(0, MOST_TYPES).join(", ")}
              {more > 0 && ` and ${more} more`}
            </span>
          )}
        </dd>
        {checked.ahead !== null && <Ahead of={checked.ahead} />}
        {checked.credentials.length > 0 && (
          <>
            <dt>Credentials</dt>
            <dd>
              {checked.credentials.map((each) => (
                <span key={each.cloud} class={each.found ? "under-line" : "under-line lacks"}>
                  {each.cloud}: {each.found ? "found" : "not found here"}
                  {each.to_do && <code class="under">{each.to_do}</code>}
                </span>
              ))}
            </dd>
          </>
        )}
        <dt>Your budget</dt>
        <dd>{leftWords(checked, useMe())}</dd>
      </dl>
    </div>
  );
}

/** A simulated or recorded run has only its own limits, also where the member has a budget. */
function leftWords({ left_usd }: Checked, me: Me): string {
  if (left_usd !== null) return `${usd(left_usd)} left`;
  return me.left_usd === null ? "no limit other than the job's own" : `${usd(me.left_usd)} left; this run does not count against it`;
}

/** What `mlcd plan` shows: the first probes and their price, the range of prices, and whether the limits look possible. */
function Ahead({ of }: { of: NonNullable<Checked["ahead"]> }): JSX.Element {
  return (
    <>
      {of.usd_per_hour !== null && (
        <>
          <dt>Prices</dt>
          <dd>
            {usd(of.usd_per_hour[0])} to {usd(of.usd_per_hour[1])} an hour
            <span class="under">each type at its smallest size</span>
          </dd>
        </>
      )}
      {of.first.length > 0 && (
        <>
          <dt>First probes</dt>
          <dd>
            {of.first.map((probe, i) => (
              <span key={i} class="under-line">
                {probe.configuration}, at most {usd(probe.worst_usd)} and {duration(probe.worst_s)}
              </span>
            ))}
            {of.first.length > 1 && (
              <span class="under">in parallel: at most {usd(of.first.reduce((sum, each) => sum + each.worst_usd, 0))}</span>
            )}
          </dd>
        </>
      )}
      <dt>Outlook</dt>
      <dd>
        {of.chance}
        <span class="under">{of.because}</span>
        {of.best !== null && of.usd !== null && of.seconds !== null && (
          <span class="under">
            Modelled, not measured: {duration(of.seconds)} and {usd(of.usd)} on {of.best}
          </span>
        )}
      </dd>
    </>
  );
}

/** 'Rents real machines, up to $100.' */
export function realMoney({ budget_usd, on }: Checked): string {
  const what = on.startsWith("functions") ? "Calls real functions" : "Rents real machines";
  return budget_usd ? `${what}, up to ${usd(budget_usd).replace(/\.00$/, "")}.` : `${what}, and there is no budget.`;
}

/** Why the budget does not allow it; '' if it does. */
function overBudget({ budget_usd, left_usd }: Checked): string {
  if (left_usd === null || budget_usd == null || budget_usd <= left_usd) return "";
  return `It may spend ${usd(budget_usd)}, and you have ${usd(left_usd)} left: lower its budget.`;
}
