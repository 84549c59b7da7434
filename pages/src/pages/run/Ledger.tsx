/** Every entry of a run's ledger, with what was spent up to it. */

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { runPath } from "../../api";
import { duration } from "../../format";
import { useGet, useThrottled } from "../../live";
import { useNewestRows } from "../../parts/useNewestRows";
import { Loading, Notice } from "../../parts/Notice";
import { Table } from "../../parts/Table";
import type { LedgerRow } from "../../types";

/** `turn`: read again when it changes. */
export function Ledger({ run, turn }: { run: string; turn: number }): JSX.Element {
  const { data, error, refresh } = useGet<{ rows: LedgerRow[] }>(runPath(run, "/ledger"));
  const soon = useThrottled(refresh);
  const [rows, before] = useNewestRows(data?.rows ?? []);
  useEffect(() => {
    if (turn > 0) soon();
  }, [turn, soon]);
  if (error !== null) return <Notice tone="bad">{error.message}</Notice>;
  if (data === null) return <Loading what="the ledger" />;
  return (
    <>
      {before}
      <Table
        caption="The ledger"
        rows={rows}
        keyOf={(row) => row.seq}
        rowClass={(row) => (row.kind === "settled" ? "" : "faint")}
        columns={[
          { name: "seq", head: "#", num: true, cell: (row) => row.seq },
          { name: "kind", head: "Entry", cell: (row) => row.kind },
          { name: "at", head: "Written (UTC)", wide: true, cell: (row) => row.at.slice(0, 19).replace("T", " ") },
          { name: "elapsed", head: "After", num: true, cell: (row) => duration(row.elapsed_s) },
          { name: "configuration", head: "Configuration", cell: (row) => row.configuration || "–" },
          { name: "usd", head: "Amount", num: true, cell: (row) => amount(row) },
          { name: "seconds", head: "Seconds", num: true, wide: true, cell: (row) => seconds(row) },
          { name: "spent", head: "Spent so far", num: true, cell: (row) => exact(row.spent_usd) },
          { name: "because", head: "Because", wrap: true, cell: (row) => row.because },
        ]}
      />
      <p class="note">Amounts in brackets were reserved before a launch; only settled amounts were spent.</p>
    </>
  );
}

function amount(row: LedgerRow): string {
  return row.usd === null ? "–" : promised(row, exact(row.usd));
}

function seconds(row: LedgerRow): string {
  return row.seconds === null ? "–" : promised(row, row.seconds.toLocaleString("en-US", TENTHS));
}

const TENTHS = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
const HUNDREDTHS_OF_A_CENT = { minimumFractionDigits: 4, maximumFractionDigits: 4 };

/** In every row to the same digit, so that a reader can add them up. */
function exact(dollars: number): string {
  return `$${dollars.toLocaleString("en-US", HUNDREDTHS_OF_A_CENT)}`;
}

function promised(row: LedgerRow, words: string): string {
  return row.kind === "reserved" ? `(${words})` : words;
}
