/** The job file of a run: read it, copy it, or edit and run it. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { runPath, send, withQuery } from "../../api";
import { usd } from "../../format";
import { useGet } from "../../live";
import { ConfirmDialog } from "../../parts/ConfirmDialog";
import { optionsOf } from "../../parts/Command";
import { useCopy } from "../../parts/copy";
import { may, useMe, useRefreshMe } from "../../parts/me";
import { Loading, Notice } from "../../parts/Notice";
import { go, Link, toRun } from "../../parts/router";
import { formValuesOf } from "../../parts/submit/submission";
import type { JobFile as Doc, View } from "../../types";

export function JobFile({ run }: { run: string }): JSX.Element {
  const { data, error } = useGet<Doc>(runPath(run, "/job"));
  const me = useMe();
  const paper = useRef<HTMLPreElement>(null);
  const [copied, copy] = useCopy(data?.job ?? "", "The job file", paper);
  if (error !== null) return <Notice>{error.message}</Notice>;
  if (data === null) return <Loading what="the job file" />;
  const options = optionsOf(formValuesOf(data.options)).join(" ");
  return (
    <div class="file">
      <div class="file-head">
        <code>{data.name}</code>
        <span class="actions">
          {may(me, "runner") && (
            <Link class="button small" to={withQuery("/submit", { from: run })}>
              Edit and run
            </Link>
          )}
          <button type="button" class="button small" onClick={copy}>
            {copied ? "Copied" : "Copy"}
          </button>
        </span>
      </div>
      <pre ref={paper} class="paper" tabIndex={0} aria-label={data.name}>
        {data.job}
      </pre>
      {options && (
        <p class="note">
          With <code>{options}</code>
        </p>
      )}
    </div>
  );
}

/** Runs the same job again; the member who asks pays for it. */
export function RunAgain({ view: { summary } }: { view: View }): JSX.Element | null {
  const me = useMe();
  const refreshMe = useRefreshMe();
  const [asked, setAsked] = useState(false);
  if (!may(me, "runner")) return null;
  const most = summary.budget_usd === null ? "without a budget" : `up to ${usd(summary.budget_usd)}`;
  const act = async (yes: boolean): Promise<void> => {
    const said = await send<{ run: string }>("POST", runPath(summary.run, "/again"), yes ? { yes } : {});
    refreshMe();
    go(toRun(said.run));
  };
  return (
    <>
      <button type="button" class="button" onClick={() => setAsked(true)}>
        Run again …
      </button>
      {asked && (
        <ConfirmDialog
          title={`Search for ${summary.job} again?`}
          sentences={[
            "A new run of the same job with the same limits. It measures from the beginning, and stops at its decision.",
            summary.budget_usd === null ? "There is no budget." : `It may spend ${most}.`,
          ]}
          words={[summary.kind === "functions" ? "train" : summary.kind, "JOB.yaml", "--decide-only"]}
          yes="Run again"
          agree={`Yes, spend ${most}`}
          act={act}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  );
}
