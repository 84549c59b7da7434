/** The output of the job, live. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, line, runPath } from "../../api";
import { Notice } from "../../parts/Notice";
import { type Piece, UNREAD, withPiece } from "./following";

const EVERY_MS = 2_000;
const NEAR_END_PX = 60;

/** `driven`: the run is active, so another launch may follow. */
export function Logs({ run, driven }: { run: string; driven: boolean }): JSX.Element {
  const [text, setText] = useState("");
  const [error, setError] = useState<string | null>(null);
  const log = useRef(UNREAD);
  const box = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    const left = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async (): Promise<void> => {
      let goesOn: boolean;
      try {
        const piece = await get<Piece>(runPath(run, `/logs?after=${log.current.next}`), left.signal);
        if (left.signal.aborted) return;
        log.current = withPiece(log.current, piece);
        goesOn = !log.current.done;
        setText(log.current.text);
        setError(null);
      } catch (problem) {
        if (left.signal.aborted) return;
        goesOn = problem instanceof ApiError && problem.isTransient;
        if (!goesOn) setError(line(problem));
      }
      if (goesOn || driven) timer = setTimeout(() => void read(), EVERY_MS);
    };
    void read();
    return () => {
      left.abort();
      clearTimeout(timer);
    };
  }, [run, driven]);
  useEffect(() => {
    if (box.current && follows.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const scrolled = (event: JSX.TargetedUIEvent<HTMLPreElement>): void => {
    const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END_PX; // do not scroll a reader who has scrolled up
  };
  return (
    <>
      {error !== null && <Notice>{error}</Notice>}
      {(error === null || text) && (
        <pre ref={box} class="paper" tabIndex={0} role="log" aria-label="Output of the job" onScroll={scrolled}>
          {text || "No output yet."}
        </pre>
      )}
    </>
  );
}
