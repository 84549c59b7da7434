/** The decision under another goal, from stored probes; requested again while a limit moves. */

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, line, runPath, withQuery } from "../../api";
import { RETRY_MS } from "../../live";
import type { WhatIf } from "../../types";

/** Between two requests. */
const GAP_MS = 90;

export interface Asking {
  answer: WhatIf | null;
  error: string | null;
  /** The answer is for an earlier request. */
  late: boolean;
}

/** One request at a time, so that answers stay in order; then the newest one, if it has changed. */
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
        again = problem instanceof ApiError && problem.isTransient;
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
