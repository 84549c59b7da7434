/** The content of a run's page, live or in a report. */

import type { JSX, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ROOT, runPath } from "../../api";
import { Spend } from "../../charts/Spend";
import { useGet } from "../../live";
import { Figures } from "../../parts/Card";
import { Loading, Notice } from "../../parts/Notice";
import { usePrinting } from "../../parts/printing";
import { inReport } from "../../parts/report";
import { Link, toRun } from "../../parts/router";
import { functionsOf, type Headway, isOther, refusalsOf, type RunTables, servingOf, type Tradeoff, type View } from "../../types";
import { Certificate } from "./Certificate";
import { Exported } from "./Exported";
import { LimitSuggestions } from "./Continue";
import { lead, Now } from "./Headline";
import { JobFile, RunAgain } from "./JobFile";
import { Ledger } from "./Ledger";
import { Logs } from "./logs/Logs";
import { OnFunctions, Outcome } from "./OnFunctions";
import { Probes } from "./Probes";
import { Served, Serving, Trials } from "./Serving";
import { RunTableView } from "./Tables";
import { TuningTrials } from "./TuningTrials";
import { cardsOf, PlannerAdditions } from "./PlannerAdditions";
import { Searched, TimeAgainstCost } from "./Training";
import "./run.css";

interface Props {
  view: View;
  /** Progress of the jobs under way. */
  progress?: Headway[];
  /** The number of the newest known entry. */
  seen?: number;
  answer?: RefObject<HTMLElement>;
  /** An action was requested: the run will change soon. */
  onActed?: () => void;
}

export function Body({ view, progress = [], seen = 0, answer, onActed }: Props): JSX.Element {
  const { summary } = view;
  const begun = hasBegun(view);
  const fetched = useGet<RunTables>(begun ? runPath(summary.run, "/tables") : null);
  const tradeoff = useGet<Tradeoff>(isTraining(view) ? runPath(summary.run, "/tradeoff") : null);
  useEffect(() => {
    fetched.refresh();
    tradeoff.refresh();
  }, [view.path.length, summary.status]);
  const tables = fetched.data?.tables ?? [];
  const complete = useRef(false);
  complete.current ||= [fetched, tradeoff].every((part) => part.data !== null || !part.loading);
  return (
    <>
      <section {...(answer ? { ref: answer } : {})} class="answer-part" aria-label="The answer">
        <p class="answer">{view.answer.headline}</p>
        {view.answer.sentence !== view.answer.headline && <p class="answer-more">{view.answer.sentence}</p>}
        {lead(view) && <p class="answer-more">{lead(view)}</p>}
        {summary.status === "refused" && <Again />}
        <LimitSuggestions view={view} onActed={onActed} />
        {view.warnings.map((warning) => (
          <Notice key={warning} tone="caution">
            {warning}
          </Notice>
        ))}
        <Now of={view.under_way} driven={summary.driven} progress={progress} />
      </section>
      {complete.current ? (
        <Below view={view} seen={seen} tables={tables} tradeoff={tradeoff.data} />
      ) : (
        <Loading what="the measurements" />
      )}
    </>
  );
}

interface BelowProps {
  view: View;
  seen: number;
  tables: RunTables["tables"];
  tradeoff: Tradeoff | null;
}

/** Everything below the result. All of it appears at once, so that nothing moves while somebody reads. */
function Below({ view, seen, tables, tradeoff }: BelowProps): JSX.Element {
  const cards = cardsOf(view);
  return (
    <>
      <First view={view} tradeoff={tradeoff} />
      {view.certificate && view.certificate.terms.length > 0 && <Certificate of={view.certificate} />}
      {cards.length > 0 && <Figures of={cards} />}
      {tables
        .filter((table) => !table.folded)
        .map((table) => (
          <section key={table.title} class="compared">
            <h2>{table.title}</h2>
            <RunTableView of={table} />
          </section>
        ))}
      <Charts view={view} />
      <PlannerAdditions view={view} />
      {hasBegun(view) && <Everything view={view} seen={seen} tables={tables.filter((table) => table.folded)} />}
    </>
  );
}

function Again(): JSX.Element {
  return (
    <p class="answer-more">
      Nothing was reserved or spent. <Link to="/submit">Submit it again</Link>.
    </p>
  );
}

/** The main chart of the result: time against cost, latency against throughput, or the loss. */
function First({ view, tradeoff }: { view: View; tradeoff: Tradeoff | null }): JSX.Element | null {
  const [serving, functions] = [servingOf(view), functionsOf(view)];
  if (serving !== null) return serving.trials.length > 0 ? <Served view={view} serving={serving} /> : null;
  if (functions !== null) return <Outcome functions={functions} />;
  return isTraining(view) ? <TimeAgainstCost view={view} tradeoff={tradeoff} /> : null;
}

function isTraining(view: View): boolean {
  return servingOf(view) === null && functionsOf(view) === null && !isOther(view) && hasBegun(view);
}

function hasBegun({ summary: { status } }: View): boolean {
  return status !== "queued" && status !== "refused";
}

function Charts({ view }: { view: View }): JSX.Element | null {
  const [serving, functions] = [servingOf(view), functionsOf(view)];
  if (serving !== null) return serving.trials.length > 0 ? <Serving view={view} serving={serving} /> : null;
  if (functions !== null) return <OnFunctions view={view} functions={functions} />;
  if (isOther(view))
    return (
      <section class="card">
        <Spend spend={view.spend} />
      </section>
    );
  return hasBegun(view) ? <Searched view={view} /> : null;
}

function Everything({ view, seen, tables }: { view: View; seen: number; tables: RunTables["tables"] }): JSX.Element {
  const { run, kind, chosen, provenance, status, driven } = view.summary;
  const [serving, functions] = [servingOf(view), functionsOf(view)];
  return (
    <>
      {functions !== null && functions.trials.length > 0 && (
        <section>
          <h2>Every trial</h2>
          <TuningTrials functions={functions} />
        </section>
      )}
      {serving !== null && serving.trials.length > 0 && (
        <section>
          <h2>Every trial</h2>
          <Trials serving={serving} />
        </section>
      )}
      {serving === null && view.path.length > 0 && (
        <section>
          <h2>{functions === null ? "Every probe" : "Every probe of the platform"}</h2>
          <Probes path={view.path} refusals={refusalsOf(view)} unit={isOther(view) ? "a second" : "samples/s"} />
        </section>
      )}
      <section class="papers">
        <h2>Records</h2>
        {!inReport() && <Links view={view} />}
        {tables.map((table) => (
          <Opened key={table.title} title={table.title}>
            <RunTableView of={table} />
          </Opened>
        ))}
        {!inReport() && kind !== "serve" && (
          <Opened title="The job file">
            <JobFile run={run} />
          </Opened>
        )}
        <Opened title="The ledger">
          <Ledger run={run} turn={seen} />
        </Opened>
        {provenance === "live" && !inReport() && (
          <Opened title="Output of the job" atFirst={status === "failed"}>
            <Logs run={run} driven={driven} />
          </Opened>
        )}
        {chosen !== null && (
          <Opened title="Export the decision">
            <Exported run={run} kind={serving?.counted === "tokens" ? "serve a language model" : kind} />
          </Opened>
        )}
      </section>
    </>
  );
}

function Links({ view }: { view: View }): JSX.Element {
  const { summary, path } = view;
  return (
    <p class="actions">
      <a class="button" href={`${ROOT}${runPath(summary.run, "/report")}`} target="_blank" rel="noopener">
        Open the report
      </a>
      {path.some((step) => step.outcome === "ok") && (
        <Link class="button" to={toRun(summary.run, "/explore")}>
          Try other limits
        </Link>
      )}
      {!summary.driven && <RunAgain view={view} />}
    </p>
  );
}

interface OpenedProps {
  title: string;
  atFirst?: boolean;
  children: JSX.Element;
}

/** A section whose content is fetched when it is opened; in a printed report it is open. */
function Opened({ title, atFirst = false, children }: OpenedProps): JSX.Element {
  const [open, setOpen] = useState(atFirst);
  const shown = (usePrinting() && inReport()) || open;
  return (
    <details class="opened" open={shown} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {shown && children}
    </details>
  );
}
