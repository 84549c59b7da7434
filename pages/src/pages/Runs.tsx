import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { line as words, withQuery } from "../api";
import { plural, usd } from "../format";
import { useGet, useNews, useSettled, useThrottled } from "../live";
import { announce } from "../parts/announce";
import { download } from "../parts/csv";
import { may, useMe } from "../parts/me";
import { Empty, Loading, Notice } from "../parts/Notice";
import { Page } from "../parts/Page";
import { go, Link, refine, usePlace } from "../parts/router";
import { FILTERS, RunFilters } from "../parts/RunFilters";
import { RunsTable } from "../parts/RunsTable";
import { Spent } from "../parts/Spent";
import { Ticked } from "../parts/Ticked";
import type { Me, News, Runs as Found, Spend } from "../types";

const TOLD = new Set(["started", "decided", "stopped", "resumed", "ended"]);
const ROWS = 50;

/** All runs, live. Filters and order are in the page's address, so that a view can be shared. */
export default function Runs(): JSX.Element {
  const me = useMe();
  const { query } = usePlace();
  const page = Math.max(1, Math.floor(Number(query.get("page")) || 1));
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
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
  const hear = (news: News): void => {
    setFresh(news.run);
    if (TOLD.has(news.kind)) announce(`${news.run}: ${news.words}`);
    refresh();
  };
  const line = useNews("/events", { entry: hear, state: refresh });
  const tick = (run: string, isTicked: boolean): void =>
    setTicked(new Set(isTicked ? [...ticked, run] : [...ticked].filter((each) => each !== run)));
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
        {listed !== null && listed.total === 0 && (narrowed ? <NothingFits /> : <FirstSteps me={me} />)}
        {listed !== null && listed.total > 0 && (
          <>
            <RunsTable
              runs={listed.runs}
              fresh={fresh}
              order={query.get("order") ?? "started"}
              onOrder={(order) => refine({ page: "", order })}
              owners={me.mode === "service"}
              ticked={ticked}
              onTick={tick}
            />
            <Ticked
              ticked={ticked}
              archived={query.get("archived") === "only"}
              onClear={() => setTicked(new Set())}
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

/** One page after the other; the address has its number. */
function Turn({ page, total }: { page: number; total: number }): JSX.Element | null {
  const last = Math.ceil(total / ROWS);
  if (last <= 1 && page === 1) return null;
  const to = (next: number): void => refine({ page: next === 1 ? "" : String(next) });
  return (
    <nav class="turn" aria-label="Pages of the list">
      <button type="button" class="button small" disabled={page <= 1} onClick={() => to(Math.min(page - 1, last))}>
        Back
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

function NothingFits(): JSX.Element {
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
        In a shell: <code>mlcd {me.mode === "ui" ? "" : `--server ${location.origin} `}train JOB.yaml</code>. It will appear here, too.
      </p>
      <Link to="/submit" class="button primary">
        Submit a job
      </Link>
    </Empty>
  );
}
