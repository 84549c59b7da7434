import type { JSX } from "preact";
import { ROOT, withQuery } from "../../api";

export interface Chosen {
  who: string;
  action: string;
  outcome: string;
  since: string;
  until: string;
}

export const NOTHING_CHOSEN: Chosen = { who: "", action: "", outcome: "", since: "", until: "" };

/** What the audit log is narrowed to, and all of that as a file. */
export function AuditFilters({ chosen, onChoose }: { chosen: Chosen; onChoose: (chosen: Chosen) => void }): JSX.Element {
  const set = (name: keyof Chosen) => (event: JSX.TargetedEvent<HTMLInputElement | HTMLSelectElement>) =>
    onChoose({ ...chosen, [name]: event.currentTarget.value });
  const file = (format: string): string => ROOT + withQuery("/audit/export", { ...chosen, format });
  return (
    <>
      <div class="filters" role="search" aria-label="Filter the audit log">
        <input type="text" aria-label="Member or address" placeholder="member" value={chosen.who} onInput={set("who")} />
        <input type="text" aria-label="Action" placeholder="action" value={chosen.action} onInput={set("action")} />
        <select aria-label="Outcome" value={chosen.outcome} onChange={set("outcome")}>
          <option value="">every outcome</option>
          <option value="ok">ok</option>
          <option value="refused">refused</option>
        </select>
        <label class="from-to">
          from <input type="date" value={chosen.since} max={chosen.until} onInput={set("since")} />
        </label>
        <label class="from-to">
          to <input type="date" value={chosen.until} min={chosen.since} onInput={set("until")} />
        </label>
      </div>
      <p class="note total">
        <a class="button small" href={file("csv")} download>
          Download as CSV
        </a>
        <a class="button small" href={file("jsonl")} download>
          as JSON lines
        </a>
      </p>
    </>
  );
}
