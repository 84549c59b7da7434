/** The tables of a run, in the words of the server: some at the top of its page, the others to be opened. */

import type { JSX } from "preact";
import { Table } from "../../parts/Table";
import type { RunTable } from "../../types";

export function RunTableView({ of }: { of: RunTable }): JSX.Element {
  return (
    <>
      <Table
        caption={of.title}
        columns={of.columns.map(({ name, number }, i) => ({
          name: String(i),
          head: name || "Mark",
          num: number,
          wrap: i === 1 && of.columns.length === 2, // names and sentences
          cell: (row: string[]) => row[i] || "–",
        }))}
        rows={of.rows}
        keyOf={(row) => of.rows.indexOf(row)}
        rowClass={(row) => (of.chosen.includes(of.rows.indexOf(row)) ? "chosen" : "")}
        {...(of.total.length > 0 ? { total: of.total } : {})}
      />
      {of.note && <p class="note">{of.note}</p>}
    </>
  );
}
