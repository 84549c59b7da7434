/** The report: the page of a run in one file with its data. It fetches nothing and has no actions. */

import { render } from "preact";
import type { JSX } from "preact";
import { PROVENANCE_MEANING, Provenance, StatusBadge } from "./parts/Badge";
import { instant } from "./format";
import { answered, openReport, type Report } from "./parts/report";
import { runPath } from "./api";
import { Page } from "./parts/Page";
import { Body } from "./pages/run/Body";
import type { View } from "./types";
import "./style.css";
import "./report.css";

function ReportPage({ view, written }: { view: View; written: string }): JSX.Element {
  const { summary } = view;
  const above = (
    <p class="run-about">
      <span>{summary.run}</span>
      <StatusBadge of={summary} />
      {summary.provenance !== null && <Provenance of={summary.provenance} />}
      <span>
        <time dateTime={summary.started_at}>{instant(summary.started_at)}</time>
        {summary.owner !== null && ` by ${summary.owner}`}
      </span>
    </p>
  );
  const version = "version" in view.document ? view.document.version : "";
  return (
    <>
      <main>
        <Page title={summary.job} tab={{ title: `${summary.job}, ${summary.run}`, icon: "" }} above={above} lead={summary.goal_words}>
          <Body view={view} />
        </Page>
      </main>
      <footer class="foot">
        <span>MLCD {version}</span>
        <span>State of the run on {instant(written)}.</span>
        <span>{summary.provenance !== null && PROVENANCE_MEANING[summary.provenance]}</span>
      </footer>
    </>
  );
}

const report = JSON.parse(document.getElementById("run")?.textContent ?? "") as Report;
openReport(report);
const view = answered<View>(runPath(report.run));
const root = document.getElementById("app");
if (root !== null && view !== null) render(<ReportPage view={view} written={report.written_at} />, root);
