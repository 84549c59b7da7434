/** A run's events as they come, as long as somebody drives it or is about to. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { runPath } from "../../api";
import { type Line, useNews } from "../../live";
import type { Headway, News, View } from "../../types";

const ACTIVE = ["queued", "searching", "running"];

interface Watched {
  line: Line;
  listening: boolean;
  /** Nobody drives it at this moment, and somebody will: it has just begun, or its driver is being replaced. */
  changesHands: boolean;
  /** Somebody was just asked to drive it. */
  expect: () => void;
}

interface Heard {
  entry: (news: News) => void;
  progress: (progress: Headway[]) => void;
  /** What is known of the run is no longer all. */
  changed: () => void;
}

/** The stream of a run ends when nobody drives it and nobody is about to: until then it is listened to. */
export function useWatched(run: string, view: View | null, { entry, progress, changed }: Heard): Watched {
  const [over, setOver] = useState(false);
  const live = useRef(false);
  const driven = view !== null && view.summary.driven;
  const listening = view !== null && !over && (driven || ACTIVE.includes(view.summary.status));
  const line = useNews(listening ? runPath(run, "/events") : null, { entry, progress, state: changed });
  useEffect(() => {
    live.current ||= driven || view?.summary.status === "queued";
    if (driven) setOver(false);
  }, [view]);
  useEffect(() => {
    if (line !== "ended") return;
    live.current = false;
    setOver(true);
    changed();
  }, [line]);
  const expect = useCallback(() => {
    live.current = true;
    setOver(false);
  }, []);
  const changesHands = live.current && listening && !driven && view.summary.status !== "queued";
  return { line, listening, changesHands, expect };
}

/** As it is shown while it changes hands: nothing is to be resumed. */
export function goesOn(view: View): View {
  const actions = view.actions.filter((action) => action !== "resume");
  return { ...view, summary: { ...view.summary, driven: true }, next: "", actions };
}
