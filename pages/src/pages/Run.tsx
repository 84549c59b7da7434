/** A run, live: what is known of it, as it changes, and what can be done with it now. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { runPath } from "../api";
import { useGet, useThrottled } from "../live";
import { announce } from "../parts/announce";
import { Loading, Notice } from "../parts/Notice";
import { Page } from "../parts/Page";
import { Link } from "../parts/router";
import { tabOf } from "../parts/tab";
import { useTallest } from "../parts/tallest";
import type { Headway, News, View } from "../types";
import { useMe } from "../parts/me";
import { Actions } from "./run/Actions";
import { Body } from "./run/Body";
import { Driver } from "./run/Driver";
import { About } from "./run/Headline";
import { Labels } from "./run/Labels";
import { goesOn, useWatched } from "./run/watched";

const RECENT_MS = 5_000;
const LOOK_AGAIN_MS = 10_000;
/** Where somebody waits for a worker. */
const WAITED_FOR = new Set(["queued", "searching", "decided", "running"]);
/** After something was asked for: when to look whether it happened. */
const SOON_MS = [200, 600, 1_200, 2_500, 5_000, 9_000];

export default function Run({ run }: { run: string }): JSX.Element {
  const me = useMe();
  const { data, error, refresh } = useGet<View>(runPath(run));
  const soon = useThrottled(refresh, 500);
  const [seen, setSeen] = useState(0);
  const [progress, setProgress] = useState<Headway[]>([]);
  const hear = (news: News): void => {
    soon();
    setSeen(news.seq);
    if (Date.now() - Date.parse(news.written_at) < RECENT_MS) announce(news.words);
  };
  const watched = useWatched(run, data, { entry: hear, progress: setProgress, changed: refresh });
  useEffect(() => setProgress(data?.progress ?? []), [data]);
  useLooking(watched.listening || data === null, refresh);
  const view = data !== null && watched.changesHands ? goesOn(data) : data;
  const answer = useTallest(view?.summary.driven ?? false);
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

/** Who else may go on with a run that nobody drives: look now and then. */
function useLooking(live: boolean, refresh: () => void): void {
  useEffect(() => {
    if (live) return undefined;
    const timer = setInterval(refresh, LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, [live, refresh]);
}
