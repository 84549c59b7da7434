/** The live page of a run: its state, its results, and the possible actions. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { runPath } from "../api";
import { useGet, useThrottled } from "../live";
import { announce } from "../parts/announce";
import { Loading, Notice } from "../parts/Notice";
import { Page } from "../parts/Page";
import { Link } from "../parts/router";
import { tabOf } from "../parts/tab";
import { useStableHeight } from "../parts/useStableHeight";
import type { Headway, RunEvent, View } from "../types";
import { useMe } from "../parts/me";
import { Actions } from "./run/Actions";
import { Body } from "./run/Body";
import { Driver } from "./run/Driver";
import { About } from "./run/Headline";
import { Labels } from "./run/Labels";
import { withDriver, useRunEvents } from "./run/useRunEvents";

const RECENT_MS = 5_000;
const LOOK_AGAIN_MS = 10_000;
/** Statuses in which a run may be waiting for a worker. */
const WAITED_FOR = new Set(["queued", "searching", "decided", "running"]);
/** After an action was requested: when to look whether it has happened. */
const SOON_MS = [200, 600, 1_200, 2_500, 5_000, 9_000];

export default function Run({ run }: { run: string }): JSX.Element {
  const me = useMe();
  const { data, error, refresh } = useGet<View>(runPath(run));
  const soon = useThrottled(refresh, 500);
  const [seen, setSeen] = useState(0);
  const [progress, setProgress] = useState<Headway[]>([]);
  const hear = (event: RunEvent): void => {
    soon();
    setSeen(event.seq);
    if (Date.now() - Date.parse(event.written_at) < RECENT_MS) announce(event.words);
  };
  const watched = useRunEvents(run, data, { entry: hear, progress: setProgress, changed: refresh });
  useEffect(() => setProgress(data?.progress ?? []), [data]);
  useLooking(watched.listening || data === null, refresh);
  const view = data !== null && watched.changesHands ? withDriver(data) : data;
  const answer = useStableHeight(view?.summary.driven ?? false);
  const acted = (): void => {
    watched.expect();
    SOON_MS.forEach((ms) => setTimeout(refresh, ms));
  };
  if (view === null) {
    return (
      <Page title={run} above={<Breadcrumb />}>
        {error ? <Notice tone="bad">{error.message}</Notice> : <Loading what="the run" />}
      </Page>
    );
  }
  const { summary } = view;
  return (
    <Page
      title={summary.job}
      tab={tabOf(summary)}
      above={<About view={view} line={watched.line} />}
      lead={summary.goal_words}
      actions={<Actions view={view} onActed={acted} />}
    >
      {error !== null && <Notice tone="bad">{error.message}</Notice>}
      {me.mode === "service" && WAITED_FOR.has(summary.status) && <Driver run={summary.run} />}
      <Labels run={summary} onChanged={refresh} />
      <Body view={view} progress={progress} seen={seen} answer={answer} onActed={acted} />
    </Page>
  );
}

function Breadcrumb(): JSX.Element {
  return (
    <p class="run-about">
      <Link to="/">Runs</Link>
    </p>
  );
}

/** Polls a run that is not driven: somebody else may resume it. */
function useLooking(live: boolean, refresh: () => void): void {
  useEffect(() => {
    if (live) return undefined;
    const timer = setInterval(refresh, LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, [live, refresh]);
}
