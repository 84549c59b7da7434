import type { JSX } from "preact";
import { duration, moment, usd, whole } from "../format";
import type { Summary } from "../types";
import { Provenance, StatusBadge } from "./Badge";
import { Link, toRun } from "./router";
import { Table, type Column } from "./Table";

interface RunsTableProps {
  runs: Summary[];
  /** The run with the newest event. */
  fresh: string;
  order: string;
  onOrder: (order: string) => void;
  owners: boolean;
  selected: ReadonlySet<string>;
  onSelect: (run: string, selected: boolean) => void;
}

export function RunsTable({ runs, fresh, order, onOrder, owners, selected, onSelect }: RunsTableProps): JSX.Element {
  const owner: Column<Summary> = { name: "owner", head: "Owner", wide: true, cell: (run) => <Owner run={run} /> };
  return (
    <div class="runs">
      <Table
        caption="Runs"
        columns={[named(selected, onSelect), STATUS, WHERE, ...(owners ? [owner] : []), CHOSEN, SPENT, TIME, STARTED]}
        rows={runs}
        keyOf={(run) => run.run}
        rowClass={(run) => (run.run === fresh ? "fresh" : "")}
        sorted={{ by: order, down: order !== "name" }}
        onSort={onOrder}
      />
    </div>
  );
}

function named(selected: RunsTableProps["selected"], onSelect: RunsTableProps["onSelect"]): Column<Summary> {
  return {
    name: "name",
    head: "Run",
    sorts: true,
    cell: (run) => (
      <div class="named">
        <input
          type="checkbox"
          aria-label={`Select ${run.run}`}
          checked={selected.has(run.run)}
          onChange={(event) => onSelect(run.run, event.currentTarget.checked)}
        />
        <div>
          <Link to={toRun(run.run)}>{run.run}</Link>
          <span class="under">{run.goal_words}</span>
          <Labelled run={run} />
          <div class="phone">
            {run.chosen !== null && <b>{run.chosen} </b>}
            {run.provenance && <Provenance of={run.provenance} />}
          </div>
        </div>
      </div>
    ),
  };
}

function Labelled({ run }: { run: Summary }): JSX.Element | null {
  const words = [run.project ?? "", ...run.tags.map((tag) => `#${tag}`), run.archived ? "archived" : ""].filter(Boolean);
  const [first] = run.note.split("\n");
  if (words.length === 0 && !first) return null;
  return (
    <span class="under labelled">
      {words.map((word) => (
        <span key={word}>{word}</span>
      ))}
      {first && <q>{first}</q>}
    </span>
  );
}

const STATUS: Column<Summary> = {
  name: "status",
  head: "Status",
  cell: (run) => (
    <>
      <StatusBadge of={run} />
      {run.tried > 0 && <span class="under">{whole(run.tried)} tried</span>}
    </>
  ),
};

const WHERE: Column<Summary> = {
  name: "where",
  head: "Kind and place",
  wide: true,
  cell: (run) => (
    <>
      {run.kind} {run.provenance && <Provenance of={run.provenance} />}
      {run.on !== run.provenance && <span class="under">{run.on}</span>}
    </>
  ),
};

const CHOSEN: Column<Summary> = {
  name: "chosen",
  head: "Chosen",
  wide: true,
  wrap: true,
  cell: (run) => (run.chosen !== null ? <b>{run.chosen}</b> : <span class="soft">{run.because || "–"}</span>),
};

const SPENT: Column<Summary> = {
  name: "spent",
  head: "Spent",
  num: true,
  sorts: true,
  cell: (run) => (
    <>
      {usd(run.spent_usd)}
      {run.budget_usd !== null && <Share of={run.spent_usd / run.budget_usd} words={`of ${usd(run.budget_usd)}`} />}
    </>
  ),
};

const TIME: Column<Summary> = {
  name: "time",
  head: "Took",
  num: true,
  wide: true,
  cell: (run) => (
    <>
      {duration(run.elapsed_s)}
      {run.deadline_s !== null && (
        <Share of={run.elapsed_s / run.deadline_s} words={`of ${duration(run.deadline_s)}`} />
      )}
    </>
  ),
};

const STARTED: Column<Summary> = {
  name: "started",
  head: "Started",
  num: true,
  wide: true,
  sorts: true,
  cell: (run) => (
    <time dateTime={run.started_at} title={run.started_at}>
      {moment(run.started_at)}
    </time>
  ),
};

function Owner({ run }: { run: Summary }): JSX.Element {
  return (
    <>
      {run.owner ?? "–"}
      {run.team !== null && <span class="under">{run.team}</span>}
    </>
  );
}

function Share({ of, words }: { of: number; words: string }): JSX.Element {
  return (
    <span class="under">
      {words}
      <i class={of > 1 ? "share over" : "share"} aria-hidden="true">
        <i style={{ width: `${Math.min(100, 100 * of)}%` }} />
      </i>
    </span>
  );
}
