/** Reads a log: its end as it grows, what is above and below the window, and any place in it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, line, runPath, withQuery } from "../../../api";
import type { LogWindow } from "../../../types";
import { fresh, type Shown, withAbove, withBelow } from "./window";

const EVERY_MS = 2_000;

/** Of which log, and which lines of it. `launch`: the newest, if null. */
export interface Source {
  run: string;
  launch: number | null;
  process: number;
  rank: number | null;
  reports: boolean;
}

export interface LogView {
  shown: Shown | null;
  error: string | null;
  /** The lines above the window; whether there are any. */
  above: () => Promise<void>;
  below: () => Promise<void>;
  /** The window around a byte, or at the end of the log. */
  goTo: (at: number | "end") => Promise<void>;
}

/** The address of one of the routes of a log. */
export function logPath({ run, ...of }: Source, route: string, more: Record<string, string | number> = {}): string {
  return withQuery(runPath(run, `/logs/${route}`), { ...of, reports: of.reports || null, ...more });
}

/** `driven`: the run is active, so another launch may follow. */
export function useLogWindow(source: Source, driven: boolean): LogView {
  const [shown, setShown] = useState<Shown | null>(null);
  const [error, setError] = useState<string | null>(null);
  const now = useRef<Shown | null>(null);
  const busy = useRef(false);
  const { run, launch, process, rank, reports } = source;

  const show = (next: Shown): void => {
    now.current = next;
    setShown(next);
    setError(null);
  };
  const read = (more: Record<string, number>, signal?: AbortSignal): Promise<LogWindow> =>
    get<LogWindow>(logPath({ ...source, launch: launch ?? now.current?.launch ?? null }, "lines", more), signal);
  const oneByOne = async (act: () => Promise<void>): Promise<void> => {
    if (busy.current) return;
    busy.current = true;
    try {
      await act();
    } catch (problem) {
      if (!(problem instanceof ApiError && problem.isTransient)) setError(line(problem));
    } finally {
      busy.current = false;
    }
  };

  useEffect(() => {
    const left = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    now.current = null;
    setShown(null);
    setError(null);
    const turn = async (): Promise<void> => {
      let withDriver = true;
      try {
        withDriver = await newest(left.signal);
      } catch (problem) {
        if (left.signal.aborted) return;
        withDriver = problem instanceof ApiError && problem.isTransient;
        if (!withDriver) setError(line(problem));
      }
      if (!left.signal.aborted && (withDriver || driven)) timer = setTimeout(() => void turn(), EVERY_MS);
    };
    /** What was written since; of a newer launch, if one has begun and none was chosen. Whether more may come. */
    const newest = async (signal: AbortSignal): Promise<boolean> => {
      const before = now.current;
      const path = (more: Record<string, number>): string => logPath(source, "lines", more);
      if (before === null) {
        const first = await get<LogWindow>(path({}), signal);
        if (!signal.aborted) show(fresh(first));
        return !first.done;
      }
      const found = await get<LogWindow>(path({ after: before.more ? before.size : before.next }), signal);
      const still = now.current;
      if (signal.aborted || still === null) return true;
      if (found.launch !== still.launch) show(fresh(await get<LogWindow>(path({}), signal)));
      else if (!still.more && still.next === before.next) show(withBelow(still, found));
      else show({ ...still, size: found.size, done: found.done });
      return !found.done;
    };
    void turn();
    return () => {
      left.abort();
      clearTimeout(timer);
    };
  }, [run, launch, process, rank, reports, driven]);

  return {
    shown,
    error,
    above: () =>
      oneByOne(async () => {
        const before = now.current;
        if (before === null || before.start <= 0) return;
        const found = await read({ before: before.start });
        if (now.current?.start === before.start) show(withAbove(now.current, found));
      }),
    below: () =>
      oneByOne(async () => {
        const before = now.current;
        if (before === null || !before.more) return;
        const found = await read({ after: before.next });
        if (now.current?.next === before.next) show(withBelow(now.current, found));
      }),
    goTo: (at) =>
      oneByOne(async () => {
        if (at === "end") show(fresh(await read({})));
        else if (!now.current?.lines.some((each) => each.at === at)) {
          const below = await read({ after: at });
          show(withAbove({ ...below, more: below.next < below.size }, await read({ before: at })));
        }
      }),
  };
}
