/** What a planner adds to the page of a run: key figures beside ours, charts, tables. */

import type { JSX } from "preact";
import { AnyFigure, isBounded } from "../../charts/AnyFigure";
import { inWords } from "../../charts/told";
import type { Figure as Card } from "../../parts/Card";
import { Table } from "../../parts/Table";
import type { Figure, Table as Described, View } from "../../types";

export function cardsOf({ cards, document }: View): Card[] {
  const facts = "facts" in document ? document.facts : [];
  return [...cards, ...facts.map(({ label, value, hint }) => ({ name: label, value, note: hint }))];
}

export function Told({ view: { document } }: { view: View }): JSX.Element | null {
  if (!("figures" in document)) return null;
  const { figures, tables } = document;
  return (
    <>
      {figures.length > 0 && (
        <div class="charts">
          {figures.map((figure) => (
            <section key={figure.title} class={isWide(figure) ? "card wide" : "card"}>
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

/** A time line, and what is held against a line that should not be crossed, are read along the whole width. */
function isWide(figure: Figure): boolean {
  return figure.kind === "spans" || isBounded(figure);
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
