/** What a check found: what would be run, and what it may cost. */

import type { JSX } from "preact";
import { plural, usd } from "../../format";
import type { Checked } from "../../types";

const MOST_TYPES = 8;

export function Outcome({ checked }: { checked: Checked }): JSX.Element {
  const more = checked.types.length - MOST_TYPES;
  return (
    <div class="outcome" role="status">
      <h2>{checked.job} can start</h2>
      <dl>
        <dt>Goal</dt>
        <dd>{checked.goal_words}</dd>
        <dt>Where</dt>
        <dd>{checked.on}</dd>
        <dt>Choices</dt>
        <dd>
          {checked.configurations === null ? "found by trying" : plural(checked.configurations, "configuration")}
          {checked.types.length > 0 && ` of ${plural(checked.types.length, "type")}`}
          {checked.types.length > 0 && (
            <span class="under">
              {checked.types.slice(0, MOST_TYPES).join(", ")}
              {more > 0 && ` and ${more} more`}
            </span>
          )}
        </dd>
        <dt>You have</dt>
        <dd>{checked.left_usd === null ? "no limit but the job's own" : `${usd(checked.left_usd)} left`}</dd>
      </dl>
      {tooDear(checked) && <p class="field-error">It may spend more than you have: lower its budget.</p>}
    </div>
  );
}

function tooDear({ budget_usd, left_usd }: Checked): boolean {
  return left_usd !== null && budget_usd !== null && budget_usd !== undefined && budget_usd > left_usd;
}
