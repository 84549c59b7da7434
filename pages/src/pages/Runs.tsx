import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { line as words, withQuery } from "../api";
import { plural, usd } from "../format";
import { useGet, useNews, useSettled, useThrottled } from "../live";
import { announce } from "../parts/announce";
import { download } from "../parts/csv";
import { Chips } from "../parts/Field";
import { may, useMe } from "../parts/me";
import { Empty, Loading, Notice } from "../parts/Notice";
import { Page } from "../parts/Page";
import { go, Link, refine, usePlace } from "../parts/router";
import { RunsTable } from "../parts/RunsTable";
import { Spent } from "../parts/Spent";
import type { Standing } from "../parts/standing";
import type { Me, News, Runs as Found, Spend } from "../types";

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
const TOLD = new Set(["started", "decided", "stopped", "resumed", "ended"]);
const ROWS = 50;

/** All runs, live. Filters and order are in the page's address, so that a view can be shared. */
export default function Runs(): JSX.Element {
  const me = useMe();
  const { query } = usePlace();
  const [limit, setLimit] = useState(ROWS);
  const [fresh, setFresh] = useState("");
  const filters = ["status", "owner", "kind", "text", "order"].map((name) => [name, query.get(name) ?? ""] as const);
  const settled = useSettled(withQuery("/runs", { ...Object.fromEntries(filters), limit }));
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
        {(narrowed || (listed !== null && listed.total > 0)) && <Filters me={me} spend={spend.data} />}
        {found.error !== null && <Notice tone="bad">{found.error.message}</Notice>}
        {listed === null && found.error === null && <Loading what="the runs" />}
        {listed !== null && listed.total === 0 && (narrowed ? <NothingFits /> : <FirstSteps me={me} />)}
        {listed !== null && listed.total > 0 && (
          <>
            <RunsTable
              runs={listed.runs}
              fresh={fresh}
              order={query.get("order") ?? "started"}
              onOrder={(order) => refine({ order })}
              owners={me.mode === "service"}
            />
            <p class="note total">
              {plural(listed.total, "run")}
              {narrowed && " that match"}, {usd(listed.spent_usd)} spent
              <CsvButton filters={Object.fromEntries(filters)} />
              {listed.total > listed.runs.length && (
                <button type="button" class="button small" onClick={() => setLimit(limit + 2 * ROWS)}>
                  Show more
                </button>
              )}
            </p>
          </>
        )}
      </div>
    </Page>
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

function Filters({ me, spend }: { me: Me; spend: Spend | null }): JSX.Element {
  const { query } = usePlace();
  const owners = (spend?.by_person ?? []).flatMap(({ name }) => (name === null ? [] : [name]));
  return (
    <form class="filters" role="search" aria-label="Filter the runs" onSubmit={(event) => event.preventDefault()}>
      <input
        type="search"
        data-filter
        aria-label="Filter by name"
        placeholder="Filter by name …"
        value={query.get("text") ?? ""}
        onInput={(event) => refine({ text: event.currentTarget.value })}
      />
      <Picker
        label="Kind"
        every="all kinds"
        of={KINDS}
        chosen={query.get("kind") ?? ""}
        onChoose={(kind) => refine({ kind })}
      />
      {me.mode === "service" && (
        <Picker
          label="Owner"
          every="all owners"
          of={owners}
          chosen={query.get("owner") ?? ""}
          onChoose={(owner) => refine({ owner })}
        />
      )}
      <Chips
        label="Status"
        of={STATUSES}
        chosen={(query.get("status") ?? "") as Standing | ""}
        onChoose={(status) => refine({ status })}
      />
    </form>
  );
}

interface PickerProps {
  label: string;
  every: string;
  of: readonly string[];
  chosen: string;
  onChoose: (value: string) => void;
}

function Picker({ label, every, of, chosen, onChoose }: PickerProps): JSX.Element {
  return (
    <select aria-label={label} value={chosen} onChange={(event) => onChoose(event.currentTarget.value)}>
      <option value="">{every}</option>
      {of.map((value) => (
        <option key={value} value={value}>
          {value}
        </option>
      ))}
    </select>
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
        In a shell: <code>mlcd {me.mode === "ui" ? "" : "--server URL "}train JOB.yaml</code>. It will appear here, too.
      </p>
      <Link to="/submit" class="button primary">
        Submit a job
      </Link>
    </Empty>
  );
}
