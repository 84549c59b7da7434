/** Runs side by side: the address names them, so that a comparison can be shared. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { withQuery } from "../api";
import { colour, outline } from "../charts/marks";
import { Paths } from "../charts/Paths";
import { useGet } from "../live";
import { Provenance, StatusBadge } from "../parts/Badge";
import { Command } from "../parts/Command";
import { Empty, Loading, Notice } from "../parts/Notice";
import { Page } from "../parts/Page";
import { Link, toRun, usePlace } from "../parts/router";
import type { Comparison } from "../types";
import "./run/run.css";

type Section = Comparison["sections"][number];
type Row = Section["rows"][number];

/** Keys that differ and are shown at once. */
const MOST_DIFFERING = 15;

export default function Compare(): JSX.Element {
  const { query } = usePlace();
  const names = (query.get("runs") ?? "").split(",").filter(Boolean);
  const { data, error } = useGet<Comparison>(names.length < 2 ? null : withQuery("/compare", { runs: names.join(",") }));
  return (
    <Page
      title="Compare"
      above={
        <p class="run-about">
          <Link to="/">Runs</Link>
        </p>
      }
      lead={names.join(", ")}
    >
      {names.length < 2 && (
        <Empty title="Nothing to compare">
          <p>Tick two or more runs in the list.</p>
          <Link to="/" class="button primary">
            All runs
          </Link>
        </Empty>
      )}
      {error !== null && <Notice tone="bad">{error.message}</Notice>}
      {data === null && error === null && names.length >= 2 && <Loading what="the runs" />}
      {data !== null && error === null && <SideBySide of={data} names={names} />}
    </Page>
  );
}

function SideBySide({ of, names }: { of: Comparison; names: string[] }): JSX.Element {
  const [brief, setBrief] = useState(false);
  const [differing, same] = [of.job.rows.filter((row) => row.differs), of.job.rows.filter((row) => !row.differs)];
  const job = { ...of.job, title: "The jobs differ in", rows: differing };
  const many = differing.length > MOST_DIFFERING;
  return (
    <>
      {of.notes.length > 0 && (
        <Notice tone="caution">
          <ul class="plain">
            {of.notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </Notice>
      )}
      {of.paths !== null && (
        <section class="card">
          <Paths runs={of.runs} by={of.paths} />
        </section>
      )}
      <section>
        <div class="card-head">
          <h2>Side by side</h2>
          <label class="tick">
            <input type="checkbox" checked={brief} onChange={(event) => setBrief(event.currentTarget.checked)} />
            Only what differs
          </label>
        </div>
        <Sections runs={of.runs} names={names} sections={many ? of.sections : [...of.sections, job]} brief={brief} caption="Side by side" />
        {differing.length === 0 && <p class="note">The jobs say the same.</p>}
      </section>
      <section class="papers">
        {many && (
          <Folded title={`${job.title} ${differing.length} keys`}>
            <Sections runs={of.runs} names={names} sections={[job]} brief={false} caption={job.title} />
          </Folded>
        )}
        <Folded title={`What was probed: ${of.probed.rows.length + of.probed.left_out} configurations`}>
          <Sections runs={of.runs} names={names} sections={[of.probed]} brief={false} caption="What was probed" />
        </Folded>
        {same.length > 0 && (
          <Folded title={`What the jobs have in common: ${same.length} keys`}>
            <Sections
              runs={of.runs}
              names={names}
              sections={[{ ...of.job, rows: same }]}
              brief={false}
              caption="What the jobs have in common"
            />
          </Folded>
        )}
      </section>
      <Command words={["compare", ...names]} />
    </>
  );
}

function Folded({ title, children }: { title: string; children: JSX.Element }): JSX.Element {
  return (
    <details class="opened">
      <summary>{title}</summary>
      {children}
    </details>
  );
}

interface SectionsProps {
  runs: Comparison["runs"];
  names: string[];
  sections: Section[];
  /** Only rows that differ. */
  brief: boolean;
  caption: string;
}

/** One table, so that every section stands below the names of its runs. */
function Sections({ runs, names, sections, brief, caption }: SectionsProps): JSX.Element {
  const shown = sections
    .map((section) => ({ ...section, rows: section.rows.filter((row) => row.differs || !brief) }))
    .filter(({ rows }) => rows.length > 0);
  return (
    <div class="scroll side-by-side" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            <td />
            {runs.map((run, index) => (
              <th key={index} scope="col">
                <Head run={run} index={index} without={names.filter((_, i) => i !== index)} />
              </th>
            ))}
          </tr>
        </thead>
        {shown.map(({ title, rows, left_out }) => (
          <tbody key={title}>
            {sections.length > 1 && (
              <tr class="heading">
                <th scope="rowgroup" colSpan={runs.length + 1}>
                  {title}
                </th>
              </tr>
            )}
            {rows.map((row) => (
              <Line key={row.name} row={row} />
            ))}
            {left_out > 0 && (
              <tr>
                <td colSpan={runs.length + 1} class="soft">
                  and {left_out} more
                </td>
              </tr>
            )}
          </tbody>
        ))}
      </table>
    </div>
  );
}

function Head({ run, index, without }: { run: Comparison["runs"][number]; index: number; without: string[] }): JSX.Element {
  const { summary } = run;
  return (
    <>
      <span class="run-head">
        <svg width="12" height="12" viewBox="-6 -6 12 12" aria-hidden="true">
          <path d={outline(index, 4.6)} fill={colour(index)} />
        </svg>
        <Link to={toRun(summary.run)}>{summary.run}</Link>
        {without.length > 1 && (
          <Link
            class="leave-out"
            to={withQuery("/compare", { runs: without.join(",") })}
            aria-label={`Compare without ${summary.run}`}
          >
            ×
          </Link>
        )}
      </span>
      <span class="under">
        {summary.kind} <StatusBadge of={summary} />
      </span>
      {summary.provenance && <Provenance of={summary.provenance} />}
    </>
  );
}

function Line({ row }: { row: Row }): JSX.Element {
  return (
    <tr class={row.differs ? "differs" : ""}>
      <th scope="row">{row.name.split(/(?<=[._])/).flatMap((part) => [part, <wbr key={part} />])}</th>
      {row.cells.map((cell, index) => (
        <td key={index}>
          {cell.words}
          {cell.note && <span class="under">{cell.note}</span>}
        </td>
      ))}
    </tr>
  );
}
