/** Every entry of a run's ledger, with what was spent up to it. */

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { runPath } from "../../api";
import { duration, usd } from "../../format";
import { useGet, useThrottled } from "../../live";
import { useNewest } from "../../parts/newest";
import { Loading, Notice } from "../../parts/Notice";
import { Table } from "../../parts/Table";
import type { LedgerRow } from "../../types";

/** `turn`: read again when it changes. */
export function Ledger({ run, turn }: { run: string; turn: number }): JSX.Element {
  const { data, error, refresh } = useGet<{ rows: LedgerRow[] }>(runPath(run, "/ledger"));
  const soon = useThrottled(refresh);
  const [rows, before] = useNewest(data?.rows ?? []);
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
          { name: "kind", head: "Entry", cell: (row) => row.kind },
          { name: "elapsed", head: "After", num: true, cell: (row) => duration(row.elapsed_s) },
          { name: "configuration", head: "Configuration", cell: (row) => row.configuration || "–" },
          { name: "usd", head: "Amount", num: true, cell: (row) => amount(row) },
          { name: "spent", head: "Spent so far", num: true, cell: (row) => usd(row.spent_usd) },
          { name: "because", head: "Because", wrap: true, cell: (row) => row.because },
        ]}
      />
      <p class="note">Amounts in brackets were set aside before a launch; only what was settled was spent.</p>
    </>
  );
}

function amount(row: LedgerRow): string {
  if (row.usd === null) return "–";
  return row.kind === "reserved" ? `(${usd(row.usd)})` : usd(row.usd);
}
