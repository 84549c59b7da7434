/** Progress of a job on real machines: a bar and a few numbers. */

import type { JSX } from "preact";
import type { Headway } from "../../types";
import { facts, spoken } from "./progressFacts";

interface Props {
  /** Undefined until the job has reported. */
  of: Headway | undefined;
  /** The most that it may cost, in dollars. */
  reserved: number | null;
}

export function Progress({ of, reserved }: Props): JSX.Element | null {
  if (of === undefined) return null;
  const share = of.share === null ? undefined : Math.min(100, Math.floor(100 * of.share));
  return (
    <div class="progress">
      <div
        class={share === undefined ? "progress-bar unknown" : "progress-bar"}
        role="progressbar"
        aria-label={`Progress of ${of.where}`}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={share}
        aria-valuetext={spoken(of)}
      >
        <i style={{ width: share === undefined ? undefined : `${share}%` }} />
      </div>
      <dl>
        {facts(of, reserved).map(({ name, value }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
