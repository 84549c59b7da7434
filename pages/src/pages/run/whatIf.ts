/** What another goal would have decided, from stored probes: asked again and again while a limit moves. */

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, line, runPath, withQuery } from "../../api";
import { RETRY_MS } from "../../live";
import type { WhatIf } from "../../types";

/** Between two questions: fast for a hand, slow for a server. */
const GAP_MS = 90;

export interface Asking {
  answer: WhatIf | null;
  error: string | null;
  /** The answer is to what was asked before. */
  late: boolean;
}

/** One question at a time, so that no answer can overtake a later one; then the newest, if it has changed. */
export function useWhatIf(run: string, query: Record<string, string>): Asking {
  const path = withQuery(runPath(run, "/what-if"), query);
  const [state, setState] = useState<Asking & { of: string }>({ answer: null, error: null, late: true, of: "" });
  const newest = useRef(path);
  const asker = useRef<{ busy: boolean; left: boolean }>({ busy: false, left: false });
  useEffect(() => {
    newest.current = path;
    const ask = async (): Promise<void> => {
      const asked = newest.current;
      let again = false;
      asker.current.busy = true;
      try {
        const answer = await get<WhatIf>(asked);
        setState({ answer, error: null, late: false, of: asked });
      } catch (problem) {
        again = problem instanceof ApiError && problem.passes;
        setState((before) => ({ ...before, error: line(problem), of: asked }));
      }
      setTimeout(() => {
        asker.current.busy = false;
        if (!asker.current.left && (again || newest.current !== asked)) void ask();
      }, again ? RETRY_MS : GAP_MS);
    };
    if (!asker.current.busy) void ask();
  }, [path]);
  useEffect(() => () => void (asker.current.left = true), []);
  return { ...state, late: state.of !== path };
}
