/** The result of a check: what would run, and what it may cost. */

import type { JSX } from "preact";
import { plural, usd } from "../../format";
import type { Checked } from "../../types";

const MOST_TYPES = 8;

export function Outcome({ checked }: { checked: Checked }): JSX.Element {
  const more = checked.types.length - MOST_TYPES;
  const refused = tooDear(checked);
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
          {checked.configurations === null ? "known only after probing" : plural(checked.configurations, "configuration")}
          {checked.types.length > 0 && ` of ${plural(checked.types.length, "type")}`}
          {checked.types.length > 0 && (
            <span class="under">
              {checked.types.slice(0, MOST_TYPES).join(", ")}
              {more > 0 && ` and ${more} more`}
            </span>
          )}
        </dd>
        <dt>You have</dt>
        <dd>{checked.left_usd === null ? "no limit other than the job's own" : `${usd(checked.left_usd)} left`}</dd>
      </dl>
    </div>
  );
}

/** Why the budget does not allow it; '' if it does. */
function tooDear({ budget_usd, left_usd }: Checked): string {
  if (left_usd === null || budget_usd == null || budget_usd <= left_usd) return "";
  return `It may spend ${usd(budget_usd)}, and you have ${usd(left_usd)} left: lower its budget.`;
}
