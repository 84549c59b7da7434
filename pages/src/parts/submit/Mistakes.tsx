/** All mistakes of a file below it: each leads to its line. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, send } from "../../api";
import { plural } from "../../format";
import { useSettled } from "../../live";
import type { JobMistake, JobMistakes } from "../../types";

const SETTLED_MS = 500;

interface MistakesProps {
  id: string;
  of: readonly JobMistake[];
  onShow: (line: number, column: number) => void;
}

export function Mistakes({ id, of, onShow }: MistakesProps): JSX.Element {
  return (
    <div class="mistakes" id={id}>
      <p class={of.length > 0 ? "field-error" : "note"} role="status">
        {of.length > 0 ? plural(of.length, "mistake") : "No mistakes"}
      </p>
      {of.length > 0 && (
        <ol>
          {of.map((each) => (
            <li key={`${each.line}:${each.column} ${each.message}`}>
              <button type="button" onClick={() => onShow(each.line, each.column)}>
                <span class="mistake-line">line {each.line}</span>
                <span>
                  {each.key && <code>{each.key}</code>} {withoutKey(each)}
                </span>
              </button>
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

/** "budget 'abc': expected dollars", of mlcd.budget: the key is said already. */
export function withoutKey({ key, message }: Pick<JobMistake, "key" | "message">): string {
  const name = key.split(".").at(-1) ?? "";
  const rest = name && message.startsWith(name) ? message.slice(name.length) : "";
  return /^: | (?=')/.test(rest) ? rest.replace(/^: | /, "") : message;
}

/**
 * All that is wrong with a text, asked again once it has not changed for a moment; null: not known, or not `asked`.
 * What is asked of an older text is cancelled; a server that is busy is asked again when it says so.
 */
export function useMistakes(text: string, asked: boolean): readonly JobMistake[] | null {
  const settled = useSettled(text, SETTLED_MS);
  const [found, setFound] = useState<{ text: string; mistakes: readonly JobMistake[] } | null>(null);
  useEffect(() => {
    if (!asked || settled.trim() === "") {
      setFound(null);
      return undefined;
    }
    const left = new AbortController();
    let again: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      try {
        const { mistakes } = await send<JobMistakes>("POST", "/checks/file", { job: settled }, left.signal);
        setFound({ text: settled, mistakes });
      } catch (error) {
        if (left.signal.aborted) return;
        setFound(null);
        if (error instanceof ApiError && error.retryAfterS !== null) {
          again = setTimeout(() => void ask(), error.retryAfterS * 1_000);
        }
      }
    };
    void ask();
    return () => {
      left.abort();
      clearTimeout(again);
    };
  }, [settled, asked]);
  return asked && text.trim() !== "" ? (found?.mistakes ?? null) : null;
}
