import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { whole } from "../format";
import { usePrinting } from "./printing";

/** More rows than this are slow to render. */
const MOST = 200;

/** The newest of many rows, and a button for older ones; null if all are shown. */
export function useNewestRows<T>(rows: T[]): [T[], JSX.Element | null] {
  const [all, setAll] = useState(false);
  const printing = usePrinting();
  const hidden = all || printing ? 0 : Math.max(0, rows.length - MOST);
  if (hidden === 0) return [rows, null];
  const before = (
    <p>
      <button type="button" class="button small" onClick={() => setAll(true)}>
        Show {whole(hidden)} older
      </button>
    </p>
  );
  return [rows.slice(hidden), before];
}
