/** What a planner of another package adds to the page of a run: key figures, charts, tables. */

import type { JSX } from "preact";
import { AnyFigure, isBounded } from "../../charts/AnyFigure";
import { inWords } from "../../charts/describedFigure";
import type { Figure as Card } from "../../parts/Card";
import { Table } from "../../parts/Table";
import type { Figure, Table as Described, View } from "../../types";

export function cardsOf({ cards, document }: View): Card[] {
  const facts = "facts" in document ? document.facts : [];
  return [...cards, ...facts.map(({ label, value, hint }) => ({ name: label, value, note: hint }))];
}

export function PlannerAdditions({ view: { document } }: { view: View }): JSX.Element | null {
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

/** Timelines, and charts with a bound that should not be crossed, get the full width. */
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
