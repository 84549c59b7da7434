/** Which runs the list shows. All of it is in the page's address, so that a filtered list can be kept and sent. */

import type { JSX } from "preact";
import { useGet } from "../live";
import type { LabelsInUse, Me, Spend } from "../types";
import { Chips } from "./Field";
import { go, refine, usePlace } from "./router";
import type { DisplayedStatus } from "./displayedStatus";

const STATUSES = [
  "queued",
  "interrupted",
  "searching",
  "decided",
  "running",
  "finished",
  "stopped",
  "infeasible",
  "failed",
  "refused",
] as const;
const KINDS = ["train", "scale", "serve", "tune", "functions"];
export const FILTERS = ["status", "owner", "team", "kind", "project", "tag", "text", "since", "until", "archived"] as const;

/** Another filter begins with the first page again. */
function narrow(change: Record<string, string>): void {
  refine({ page: "", ...change });
}

export function RunFilters({ me, spend }: { me: Me; spend: Spend | null }): JSX.Element {
  const { query } = usePlace();
  const labels = useGet<LabelsInUse>("/labels").data;
  const said = (name: (typeof FILTERS)[number]): string => query.get(name) ?? "";
  const pick = (name: (typeof FILTERS)[number], label: string, every: string, of: readonly string[]): JSX.Element => (
    <Picker label={label} every={every} of={of} chosen={said(name)} onChoose={(value) => narrow({ [name]: value })} />
  );
  const projects = labels?.projects.map(({ name }) => name) ?? [];
  const tags = labels?.tags.map(({ name }) => name) ?? [];
  return (
    <form class="filters" role="search" aria-label="Filter the runs" onSubmit={(event) => event.preventDefault()}>
      <input
        type="search"
        data-filter
        aria-label="Filter by name, tag or note"
        placeholder="Filter by name, tag or note …"
        value={said("text")}
        onInput={(event) => narrow({ text: event.currentTarget.value })}
      />
      {pick("kind", "Kind", "all kinds", KINDS)}
      {(projects.length > 0 || said("project")) && pick("project", "Project", "all projects", projects)}
      {(tags.length > 0 || said("tag")) && pick("tag", "Tag", "all tags", tags)}
      {me.mode === "service" && pick("owner", "Owner", "all owners", namesOf(spend?.by_person))}
      {me.mode === "service" && pick("team", "Team", "all teams", namesOf(spend?.by_team))}
      <select
        aria-label="Archive"
        value={said("archived")}
        onChange={(event) => narrow({ archived: event.currentTarget.value })}
      >
        <option value="">not archived</option>
        <option value="only">archived</option>
        <option value="all">archived or not</option>
      </select>
      <span class="from-to">
        <label>
          from{" "}
          <input
            type="date"
            value={said("since")}
            max={said("until")}
            onInput={(event) => narrow({ since: event.currentTarget.value })}
          />
        </label>
        <label>
          to{" "}
          <input
            type="date"
            value={said("until")}
            min={said("since")}
            onInput={(event) => narrow({ until: event.currentTarget.value })}
          />
        </label>
      </span>
      {FILTERS.some(said) && (
        <button type="button" class="button quiet" onClick={() => go("/", true)}>
          Clear
        </button>
      )}
      <Chips
        label="Status"
        of={STATUSES}
        chosen={said("status") as DisplayedStatus | ""}
        onChoose={(status) => narrow({ status })}
      />
    </form>
  );
}

function namesOf(shares: Spend["by_person"] | undefined): string[] {
  return (shares ?? []).flatMap(({ name }) => (name === null ? [] : [name]));
}

interface PickerProps {
  label: string;
  every: string;
  of: readonly string[];
  chosen: string;
  onChoose: (value: string) => void;
}

/** What the address says is always among them, also where nothing has it any more. */
function Picker({ label, every, of, chosen, onChoose }: PickerProps): JSX.Element {
  const shown = chosen === "" || of.includes(chosen) ? of : [...of, chosen];
  return (
    <select aria-label={label} value={chosen} onChange={(event) => onChoose(event.currentTarget.value)}>
      <option value="">{every}</option>
      {shown.map((value) => (
        <option key={value} value={value}>
          {value}
        </option>
      ))}
    </select>
  );
}
