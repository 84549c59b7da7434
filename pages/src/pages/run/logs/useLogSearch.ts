/** A search in a log, part by part: the server looks through some megabytes at a time. */

import { useEffect, useRef, useState } from "preact/hooks";
import { get, line } from "../../../api";
import type { LogMatches } from "../../../types";
import { logPath, type Source } from "./useLogWindow";

/** More lines than anybody goes through; a search stops there. */
const MOST = 10_000;
const TYPING_MS = 300;

export interface LogSearch {
  /** Where the lines begin that hold the text. */
  at: number[];
  /** The line among them that one is at. */
  current: number | null;
  /** In words: how many lines, and which of them. */
  words: string;
  next: () => void;
  previous: () => void;
}

const NOTHING = { at: [] as number[], done: true, error: "" };

/** `size`: of the log; where it grows, the search goes on. `go`: shows the line at a byte. */
export function useLogSearch(source: Source, text: string, size: number, go: (at: number) => void): LogSearch {
  const [found, setFound] = useState(NOTHING);
  const [current, setCurrent] = useState<number | null>(null);
  const reached = useRef(0);
  const { run, launch, process, rank, reports } = source;
  useEffect(() => {
    setFound(NOTHING);
    setCurrent(null);
    reached.current = 0;
  }, [run, launch, process, rank, reports, text]);
  useEffect(() => {
    if (!text || size === 0) return undefined;
    const left = new AbortController();
    const look = async (): Promise<void> => {
      for (let done = false; !done; ) {
        const part = await get<LogMatches>(logPath(source, "find", { text, after: reached.current }), left.signal);
        if (left.signal.aborted) return;
        done = part.done || part.next <= reached.current;
        reached.current = part.next;
        setFound((before) => {
          const at = [...before.at, ...part.at.filter((each) => each > (before.at.at(-1) ?? -1))];
          done ||= at.length >= MOST;
          return { at: at.slice(0, MOST), done, error: "" };
        });
      }
    };
    const timer = setTimeout(() => {
      look().catch((problem: unknown) => {
        if (!left.signal.aborted) setFound((before) => ({ ...before, done: true, error: line(problem) }));
      });
    }, TYPING_MS);
    return () => {
      left.abort();
      clearTimeout(timer);
    };
  }, [run, launch, process, rank, reports, text, size]);
  const step = (by: 1 | -1): void => {
    const { at } = found;
    if (at.length === 0) return;
    const before = current === null ? -1 : at.indexOf(current);
    const next = before < 0 ? (by > 0 ? 0 : at.length - 1) : (before + by + at.length) % at.length;
    setCurrent(at[next]!);
    go(at[next]!);
  };
  return { at: found.at, current, words: words(found, current, text), next: () => step(1), previous: () => step(-1) };
}

function words({ at, done, error }: typeof NOTHING, current: number | null, text: string): string {
  if (!text) return "";
  if (error) return error;
  const many = `${at.length.toLocaleString("en-US")}${at.length >= MOST ? "+" : ""}`;
  if (current !== null) return `${(at.indexOf(current) + 1).toLocaleString("en-US")} of ${many}`;
  if (at.length === 0) return done ? "not found" : "searching …";
  return `${many} ${at.length === 1 ? "line" : "lines"}`;
}

/** Where the first line is that tells of an error; null where there is none. */
export async function firstError(source: Source): Promise<number | null> {
  for (let after = 0; ; ) {
    const part = await get<LogMatches>(logPath(source, "find", { after }));
    if (part.at.length > 0) return part.at[0]!;
    if (part.done || part.next <= after) return null;
    after = part.next;
  }
}
