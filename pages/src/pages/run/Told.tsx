/** What a planner adds to the page of a run: key figures, charts, tables. */

import type { JSX } from "preact";
import { AnyFigure } from "../../charts/AnyFigure";
import { inWords } from "../../charts/told";
import { Figures } from "../../parts/Card";
import { Table } from "../../parts/Table";
import type { Table as Described, View } from "../../types";

export function Told({ view: { document } }: { view: View }): JSX.Element | null {
  if (!("facts" in document)) return null;
  const { facts, figures, tables } = document;
  return (
    <>
      {facts.length > 0 && <Figures of={facts.map(({ label, value, hint }) => ({ name: label, value, note: hint }))} />}
      {figures.length > 0 && (
        <div class="charts">
          {figures.map((figure) => (
            <section key={figure.title} class="card">
              <AnyFigure figure={figure} />
            </section>
          ))}
        </div>
      )}
      {tables.map((table) => (
        <section key={table.title}>
          <h2>{table.title}</h2>
          <AnyTable table={table} />
        </section>
      ))}
    </>
  );
}

function AnyTable({ table: { title, columns, rows } }: { table: Described }): JSX.Element {
  return (
    <Table
      caption={title}
      columns={columns.map(({ label, unit, align }, i) => ({
        name: label,
        head: label,
        num: align === "right",
        cell: (row: Described["rows"][number]) => inWords(row[i] ?? null, unit),
      }))}
      rows={rows}
      keyOf={(row) => rows.indexOf(row)}
    />
  );
}
