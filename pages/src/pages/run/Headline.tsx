/** The top of a run's page: its result or its current step, and the reason. */

import type { JSX } from "preact";
import { Provenance, StatusBadge } from "../../parts/Badge";
import { inReport } from "../../parts/report";
import { Link } from "../../parts/router";
import { duration, moment, usd } from "../../format";
import type { StreamState } from "../../live";
import type { Headway, Status, UnderWay, View } from "../../types";
import { Progress } from "./Progress";

const OVER: Status[] = ["finished", "failed", "infeasible", "refused"];

export function About({ view, line }: { view: View; line: StreamState }): JSX.Element {
  const { summary } = view;
  return (
    <p class="run-about">
      <Link to="/">Runs</Link>
      <span aria-hidden="true">/</span>
      <span>{summary.run}</span>
      <StatusBadge of={summary} />
      {summary.provenance && <Provenance of={summary.provenance} />}
      <span>
        <time dateTime={summary.started_at}>{moment(summary.started_at)}</time>
        {summary.owner !== null && ` by ${summary.owner}`}
      </span>
      {summary.driven && line === "lost" && <span class="lost">connection lost, reconnecting</span>}
    </p>
  );
}

/** A sentence below the headline: the reason, or what happens next; in a report also the command to continue. */
export function lead(view: View): string {
  const { status } = view.summary;
  if (view.under_way.length > 0 && view.summary.driven) return ""; // that list says it better
  const { sentence, more } = view.answer;
  if (OVER.includes(status)) return once(sentence, more || (status === "finished" ? "" : view.next));
  return [once(sentence, view.next), inReport() ? more : ""].filter(Boolean).join(" ");
}

/** A text as a sentence, unless the other sentence already says it. */
function once(sentence: string, said: string): string {
  if (sentence.toLowerCase().startsWith(said.toLowerCase())) return "";
  return said && `${said.charAt(0).toUpperCase()}${said.slice(1)}${/[.!?]$/.test(said) ? "" : "."}`;
}

interface NowProps {
  of: UnderWay[];
  driven: boolean;
  progress: Headway[];
}

/** The probes or the job under way: reason, progress, maximum time and cost. */
export function Now({ of, driven, progress }: NowProps): JSX.Element | null {
  if (of.length === 0) return null;
  const shown = (label: string): Headway | undefined => (driven ? progress.find((p) => p.label === label) : undefined);
  return (
    <ul class="now" aria-label={driven ? "Running now" : "Interrupted"}>
      {of.map((each) => (
        <li key={each.label}>
          <i class={driven ? "pulse" : "pulse still"} aria-hidden="true" />
          <div>
            <b>
              {driven ? (each.purpose === "run" ? "Running" : "Probing") : "Interrupted:"} {each.configuration}
            </b>
            <span class="soft"> {each.because}</span>
          </div>
          <span class="most">{atMost(each.worst_usd, each.worst_s)}</span>
          <Progress of={shown(each.label)} reserved={each.worst_usd} />
        </li>
      ))}
    </ul>
  );
}

function atMost(dollars: number | null, seconds: number | null): string {
  const parts = [dollars === null ? "" : usd(dollars), seconds === null ? "" : duration(seconds)].filter(Boolean);
  return parts.length > 0 ? `at most ${parts.join(", ")}` : "";
}
