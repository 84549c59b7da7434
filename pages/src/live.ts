/** What a page shows stays true: hooks that fetch, and hooks that listen to the server's events. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, ROOT, withQuery } from "./api";
import type { Headway, News } from "./types";

const RETRY_MS = 3_000;

export interface Got<T> {
  data: T | null;
  error: ApiError | null;
  loading: boolean;
  /** Fetch again; what is shown stays until the answer is there. */
  refresh: () => void;
}

/** GET a document; `null` fetches nothing. What was shown stays while a new path is on its way. */
export function useGet<T>(path: string | null): Got<T> {
  const [state, setState] = useState<{ data: T | null; error: ApiError | null; loading: boolean }>({
    data: null,
    error: null,
    loading: path !== null,
  });
  const [turn, setTurn] = useState(0);
  const refresh = useCallback(() => setTurn((n) => n + 1), []);
  useEffect(() => {
    if (path === null) return undefined;
    const left = new AbortController();
    let again: ReturnType<typeof setTimeout> | undefined;
    setState((before) => ({ ...before, loading: true }));
    get<T>(path, left.signal).then(
      (data) => setState({ data, error: null, loading: false }),
      (error: unknown) => {
        if (left.signal.aborted || !(error instanceof ApiError)) return;
        setState((before) => ({ ...before, error, loading: false }));
        if (error.status === 0 || error.status === 503) again = setTimeout(refresh, RETRY_MS);
      },
    );
    return () => {
      left.abort();
      clearTimeout(again);
    };
  }, [path, turn, refresh]);
  return { ...state, refresh };
}

export type Line = "connecting" | "live" | "lost" | "ended";

/**
 * Listen to a stream of events, `null` to none. The browser resumes a broken one by its Last-Event-ID; one that was
 * refused (the server restarts, say) is opened again after the last event seen. `hear`: how far the jobs are.
 */
export function useNews(
  path: string | null,
  tell: (news: News) => void,
  after?: number,
  hear?: (progress: Headway[]) => void,
): Line {
  const [state, setState] = useState<Line>("connecting");
  const listener = useRef(tell);
  listener.current = tell;
  const hearer = useRef(hear);
  hearer.current = hear;
  useEffect(() => {
    if (path === null) return undefined;
    let seen = after;
    let source: EventSource;
    let again: ReturnType<typeof setTimeout> | undefined;
    const open = (): void => {
      source = new EventSource(ROOT + withQuery(path, { after: seen }));
      source.onopen = () => setState("live");
      source.addEventListener("entry", (event) => {
        const news = JSON.parse((event as MessageEvent<string>).data) as News;
        if (seen !== undefined && news.seq <= seen) return;
        seen = news.seq;
        listener.current(news);
      });
      source.addEventListener("progress", (event) => {
        const told = JSON.parse((event as MessageEvent<string>).data) as { progress: Headway[] };
        hearer.current?.(told.progress);
      });
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

/** At once, then at most every `ms`: for a refresh that many events ask for. */
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

/** A value that has not changed for `ms`: of what is being typed. */
export function useSettled<T>(value: T, ms = 200): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
