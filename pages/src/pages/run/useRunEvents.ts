/** Follows a run's event stream while it is driven or about to be. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { runPath } from "../../api";
import { type StreamState, useEventStream } from "../../live";
import type { Headway, RunEvent, View } from "../../types";

const ACTIVE = ["queued", "searching", "running"];

interface RunEvents {
  line: StreamState;
  listening: boolean;
  /** Not driven at the moment, but about to be: it has just started, or its driver is being replaced. */
  changesHands: boolean;
  /** Call it when the run was sent to the workers: it will be driven soon. */
  expect: () => void;
}

interface Listeners {
  entry: (event: RunEvent) => void;
  progress: (progress: Headway[]) => void;
  /** The run has changed. */
  changed: () => void;
}

/** The stream of a run ends when it is neither driven nor about to be. */
export function useRunEvents(run: string, view: View | null, { entry, progress, changed }: Listeners): RunEvents {
  const [over, setOver] = useState(false);
  const live = useRef(false);
  const driven = view !== null && view.summary.driven;
  const listening = view !== null && !over && (driven || ACTIVE.includes(view.summary.status));
  const line = useEventStream(listening ? runPath(run, "/events") : null, { entry, progress, state: changed });
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

/** The view while its driver is being replaced: without the action to resume. */
export function withDriver(view: View): View {
  const actions = view.actions.filter((action) => action !== "resume");
  return { ...view, summary: { ...view.summary, driven: true }, next: "", actions };
}
