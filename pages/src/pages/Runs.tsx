import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { line as words, withQuery } from "../api";
import { plural, usd } from "../format";
import { useGet, useEventStream, useSettled, useThrottled } from "../live";
import { announce } from "../parts/announce";
import { download } from "../parts/csv";
import { may, useMe } from "../parts/me";
import { Empty, Loading, Notice } from "../parts/Notice";
import { Page } from "../parts/Page";
import { go, Link, refine, usePlace } from "../parts/router";
import { FILTERS, RunFilters } from "../parts/RunFilters";
import { RunsTable } from "../parts/RunsTable";
import { Spent } from "../parts/Spent";
import { SelectedRuns } from "../parts/SelectedRuns";
import type { Me, RunEvent, Runs as Found, Spend } from "../types";

/** Kinds of events that are announced to screen readers. */
const ANNOUNCED = new Set(["started", "decided", "stopped", "resumed", "ended"]);
const ROWS = 50;

/** All runs, live. Filters and order are in the page's address, so that a view can be shared. */
export default function Runs(): JSX.Element {
  const me = useMe();
  const { query } = usePlace();
  const page = Math.max(1, Math.floor(Number(query.get("page")) || 1));
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [fresh, setFresh] = useState("");
  const filters = [...FILTERS, "order"].map((name) => [name, query.get(name) ?? ""] as const);
  const asked: Record<string, string> = Object.fromEntries(filters);
  const settled = useSettled(withQuery("/runs", { ...asked, limit: ROWS, offset: (page - 1) * ROWS }));
  const found = useGet<Found>(settled);
  const spend = useGet<Spend>("/spend");
  const refresh = useThrottled(() => {
    found.refresh();
    spend.refresh();
  });
  const hear = (event: RunEvent): void => {
    setFresh(event.run);
    if (ANNOUNCED.has(event.kind)) announce(`${event.run}: ${event.words}`);
    refresh();
  };
  const line = useEventStream("/events", { entry: hear, state: refresh });
  const select = (run: string, isSelected: boolean): void =>
    setSelected(new Set(isSelected ? [...selected, run] : [...selected].filter((each) => each !== run)));
  const known = spend.data !== null || spend.error !== null; // shown together with the runs, so that they do not move down later
  const listed = known ? found.data : null;
  const narrowed = filters.some(([name, value]) => name !== "order" && value !== "");
  const submit = may(me, "runner") && (
    <Link to="/submit" class="button primary">
      Submit a job
    </Link>
  );
  return (
    <Page title="Runs" lead={<Live line={line} />} actions={submit || undefined}>
      <div class="runs-page">
        {listed !== null && spend.data !== null && spend.data.by_month.length > 0 && (
          <Spent spend={spend.data} me={me} />
        )}
        {(narrowed || (listed !== null && listed.total > 0)) && <RunFilters me={me} spend={spend.data} />}
        {found.error !== null && <Notice tone="bad">{found.error.message}</Notice>}
        {listed === null && found.error === null && <Loading what="the runs" />}
        {listed !== null && listed.total === 0 && (narrowed ? <NoMatch /> : <FirstSteps me={me} />)}
        {listed !== null && listed.total > 0 && (
          <>
            <RunsTable
              runs={listed.runs}
              fresh={fresh}
              order={query.get("order") ?? "started"}
              onOrder={(order) => refine({ page: "", order })}
              owners={me.mode === "service"}
              selected={selected}
              onSelect={select}
            />
            <SelectedRuns
              selected={selected}
              archived={query.get("archived") === "only"}
              onClear={() => setSelected(new Set())}
              onChanged={refresh}
            />
            <p class="note total">
              {plural(listed.total, "run")}
              {narrowed && " that match"}, {usd(listed.spent_usd)} spent
              <CsvButton filters={asked} />
            </p>
            <Turn page={page} total={listed.total} />
          </>
        )}
      </div>
    </Page>
  );
}

/** Buttons to the previous and next page of the list; the page's number is in the address. */
function Turn({ page, total }: { page: number; total: number }): JSX.Element | null {
  const last = Math.ceil(total / ROWS);
  if (last <= 1 && page === 1) return null;
  const to = (next: number): void => refine({ page: next === 1 ? "" : String(next) });
  return (
    <nav class="turn" aria-label="Pages of the list">
      <button type="button" class="button small" disabled={page <= 1} onClick={() => to(Math.min(page - 1, last))}>
        Previous
      </button>
      <span>
        {page} of {last}
      </span>
      <button type="button" class="button small" disabled={page >= last} onClick={() => to(page + 1)}>
        Next
      </button>
    </nav>
  );
}

function CsvButton({ filters }: { filters: Record<string, string> }): JSX.Element {
  const [error, setError] = useState<string | null>(null);
  const save = (): void => {
    download(filters).then(
      () => setError(null),
      (refused: unknown) => setError(words(refused)),
    );
  };
  return (
    <>
      <button type="button" class="button small" onClick={save}>
        Download as CSV
      </button>
      {error !== null && <span class="field-error">{error}</span>}
    </>
  );
}

function Live({ line }: { line: string }): JSX.Element {
  if (line === "lost") return <span class="line lost">Connection lost; reconnecting …</span>;
  return (
    <span class={`line ${line}`}>{line === "live" ? "Up to date: this page updates by itself." : "Connecting …"}</span>
  );
}

function NoMatch(): JSX.Element {
  return (
    <Empty title="No matching run">
      <button type="button" class="button" onClick={() => go("/", true)}>
        Show all runs
      </button>
    </Empty>
  );
}

function FirstSteps({ me }: { me: Me }): JSX.Element {
  if (!may(me, "runner")) {
    return (
      <Empty title="No runs yet">
        <p>Your role is viewer: runs that others submit will appear here.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No runs yet">
      <p>Submit a job file or an ONNX model, or start with an example on a simulated cloud, at no cost.</p>
      <p>
        Or in a shell: <code>mlcd {me.mode === "ui" ? "" : `--server ${location.origin} `}train JOB.yaml</code>. The run appears here, too.
      </p>
      <Link to="/submit" class="button primary">
        Submit a job
      </Link>
    </Empty>
  );
}
