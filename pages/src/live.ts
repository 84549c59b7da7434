/** Keeps pages up to date: hooks that fetch documents, and hooks that follow event streams. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, ROOT, withQuery } from "./api";
import { oneAtATime } from "./parts/oneAtATime";
import { answered } from "./parts/report";
import type { Headway, RunEvent } from "./types";

/** Between two attempts to reach the server. */
export const RETRY_MS = 3_000;

export interface Got<T> {
  data: T | null;
  error: ApiError | null;
  loading: boolean;
  /** Fetch again; the old data stay until the new ones arrive. */
  refresh: () => void;
}

/**
 * GET a document; `null` fetches nothing. The old data stay while a new path is fetched. A refresh waits for a request
 * in flight: if each refresh cancelled the one before, a busy server would never get to answer.
 */
export function useGet<T>(path: string | null): Got<T> {
  const [state, setState] = useState<{ data: T | null; error: ApiError | null; loading: boolean }>({
    data: path === null ? null : answered<T>(path),
    error: null,
    loading: path !== null,
  });
  const asker = useRef<() => void>(() => undefined);
  const refresh = useCallback(() => asker.current(), []);
  useEffect(() => {
    asker.current = () => undefined;
    if (path === null) return undefined;
    const left = new AbortController();
    let again: ReturnType<typeof setTimeout> | undefined;
    const turn = oneAtATime(async () => {
      clearTimeout(again);
      setState((before) => ({ ...before, loading: true }));
      try {
        const data = await get<T>(path, left.signal);
        if (!left.signal.aborted) setState({ data, error: null, loading: false });
      } catch (error) {
        if (left.signal.aborted || !(error instanceof ApiError)) return;
        setState((before) => ({ ...before, error, loading: false }));
        if (error.isTransient) again = setTimeout(turn, RETRY_MS);
      }
    });
    asker.current = turn;
    turn();
    return () => {
      left.abort();
      clearTimeout(again);
    };
  }, [path]);
  return { ...state, refresh };
}

export type StreamState = "connecting" | "live" | "lost" | "ended";

interface Listeners {
  entry: (event: RunEvent) => void;
  /** Progress of running jobs. */
  progress?: (progress: Headway[]) => void;
  /** The run has started or stopped being driven. */
  state?: () => void;
}

/**
 * Follow an event stream; `null` follows none. The browser resumes a broken one by its Last-Event-ID; a refused one
 * (for example during a restart of the server) is opened again after the last event.
 */
export function useEventStream(path: string | null, listeners: Listeners): StreamState {
  const [state, setState] = useState<StreamState>("connecting");
  const listener = useRef(listeners);
  listener.current = listeners;
  useEffect(() => {
    if (path === null) return undefined;
    let last: number | undefined; // the number of the last event
    let source: EventSource;
    let again: ReturnType<typeof setTimeout> | undefined;
    const open = (): void => {
      source = new EventSource(ROOT + withQuery(path, { after: last }));
      source.onopen = () => setState("live");
      source.addEventListener("entry", (event) => {
        const entry = JSON.parse((event as MessageEvent<string>).data) as RunEvent;
        if (last !== undefined && entry.seq <= last) return;
        last = entry.seq;
        listener.current.entry(entry);
      });
      source.addEventListener("progress", (event) => {
        const { progress } = JSON.parse((event as MessageEvent<string>).data) as { progress: Headway[] };
        listener.current.progress?.(progress);
      });
      source.addEventListener("state", () => listener.current.state?.());
      source.addEventListener("end", () => {
        source.close();
        setState("ended");
      });
      source.onerror = () => {
        setState("lost");
        if (source.readyState === EventSource.CLOSED) again = setTimeout(open, RETRY_MS);
      };
    };
    setState("connecting");
    open();
    return () => {
      source.close();
      clearTimeout(again);
    };
  }, [path]);
  return state;
}

/** Throttles a refresh that many events request: at once, then at most every `ms`. */
export function useThrottled(act: () => void, ms = 1_000): () => void {
  const state = useRef<{ timer: ReturnType<typeof setTimeout> | undefined; last: number }>({
    timer: undefined,
    last: 0,
  });
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => () => clearTimeout(state.current.timer), []);
  return useCallback(() => {
    if (state.current.timer !== undefined) return;
    const wait = Math.max(0, state.current.last + ms - Date.now());
    state.current.timer = setTimeout(() => {
      state.current = { timer: undefined, last: Date.now() };
      latest.current();
    }, wait);
  }, [ms]);
}

/** Calls `act` every `ms` while the page is visible. */
export function useEvery(act: () => void, ms: number): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) act();
    }, ms);
    return () => clearInterval(timer);
  }, [act, ms]);
}

/** Debounces a value: the newest one that has not changed for `ms`. */
export function useSettled<T>(value: T, ms = 200): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
