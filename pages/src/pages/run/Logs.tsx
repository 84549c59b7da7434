/** What the job itself writes, as it comes. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, line, runPath } from "../../api";
import { Notice } from "../../parts/Notice";

const EVERY_MS = 2_000;
const NEAR_END_PX = 60;
/** Characters that are kept on the page. */
const MOST = 200_000;

export function Logs({ run }: { run: string }): JSX.Element {
  const [text, setText] = useState("");
  const [error, setError] = useState<string | null>(null);
  const box = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    const left = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async (after: number): Promise<void> => {
      try {
        const said = await get<{ text: string; next: number; done: boolean }>(
          runPath(run, `/logs?after=${after}`),
          left.signal,
        );
        if (said.text) setText((before) => (before + said.text).slice(-MOST));
        if (!said.done) timer = setTimeout(() => void read(said.next), EVERY_MS);
      } catch (problem) {
        if (!left.signal.aborted) setError(line(problem));
      }
    };
    void read(0);
    return () => {
      left.abort();
      clearTimeout(timer);
    };
  }, [run]);
  useEffect(() => {
    if (box.current && follows.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const scrolled = (event: JSX.TargetedUIEvent<HTMLPreElement>): void => {
    const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END_PX; // who has scrolled up wants to stay there
  };
  if (error !== null) return <Notice>{error}</Notice>;
  return (
    <pre ref={box} class="paper" tabIndex={0} role="log" aria-label="What the job writes" onScroll={scrolled}>
      {text || "Nothing was written yet."}
    </pre>
  );
}
