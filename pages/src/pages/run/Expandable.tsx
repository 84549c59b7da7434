/** A table with expandable rows: number, name, a few columns, and details below. */

import type { ComponentChildren, JSX } from "preact";
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { useNewestRows } from "../../parts/useNewestRows";
import { usePrinting } from "../../parts/printing";

export interface Cell<T> {
  head: string;
  cell: (row: T) => ComponentChildren;
  /** Not at phone width. */
  wide?: boolean;
  /** What a click on the head orders by; null comes last. */
  by?: ((row: T) => number | null) | undefined;
}

/** A column by its head, and whether the largest comes first. */
interface Order {
  head: string;
  down: boolean;
}

interface Props<T> {
  caption: string;
  word: string;
  rows: T[];
  number: (row: T) => number;
  name: (row: T) => string;
  looks: (row: T) => string;
  columns: Cell<T>[];
  /** Names and words about an open row. */
  facts: (row: T) => [string, string][];
}

/** The rows by a column; where two are equal, and where nothing is known, as they were. */
export function inOrder<T>(rows: T[], by: (row: T) => number | null, down: boolean): T[] {
  return [...rows].sort((a, b) => {
    const [first, second] = [by(a), by(b)];
    if (first === null || second === null) return Number(first === null) - Number(second === null);
    return down ? second - first : first - second;
  });
}

interface HeadProps<T> {
  column: Cell<T>;
  order: Order | null;
  onOrder: (order: Order) => void;
}

function Head<T>({ column: { head, wide, by }, order, onOrder }: HeadProps<T>): JSX.Element {
  const mine = order?.head === head ? order : null;
  return (
    <th scope="col" class={wide ? "num wide" : "num"} aria-sort={mine ? (mine.down ? "descending" : "ascending") : undefined}>
      {by ? (
        <button type="button" class="sort" onClick={() => onOrder({ head, down: mine !== null && !mine.down })}>
          {head}
          <span aria-hidden="true">{mine ? (mine.down ? " ↓" : " ↑") : ""}</span>
        </button>
      ) : (
        head
      )}
    </th>
  );
}

export function Expandable<T>({ caption, word, rows, number, name, looks, columns, facts }: Props<T>): JSX.Element {
  const [open, setOpen] = useState<Set<number>>(new Set());
  const [order, setOrder] = useState<Order | null>(null);
  const printing = usePrinting();
  const [newest, before] = useNewestRows(rows);
  const by = columns.find(({ head }) => head === order?.head)?.by;
  const shown = by && order ? inOrder(newest, by, order.down) : newest;
  const isOpen = (row: T): boolean => printing || open.has(number(row));
  const toggle = (row: T): void => {
    const next = new Set(open);
    if (!next.delete(number(row))) next.add(number(row));
    setOpen(next);
  };
  return (
    <>
      {before}
      <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
        <table class="expandable">
          <caption>{caption}. Expand a row for details; a click on a head sorts by it.</caption>
          <thead>
            <tr>
              <th scope="col" aria-sort={order === null ? "ascending" : undefined}>
                <button type="button" class="sort" onClick={() => setOrder(null)}>
                  {word}
                  <span aria-hidden="true">{order === null ? " ↑" : ""}</span>
                </button>
              </th>
              {columns.map((column) => (
                <Head key={column.head} column={column} order={order} onOrder={setOrder} />
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <Fragment key={number(row)}>
                <tr class={looks(row)}>
                  <th scope="row">
                    <button
                      type="button"
                      class="open"
                      title={facts(row)[0]?.[1]}
                      aria-expanded={isOpen(row)}
                      onClick={() => toggle(row)}
                    >
                      <span class="caret" aria-hidden="true" />
                      <span class="no">{number(row)}</span>
                      <span class="name">{name(row)}</span>
                    </button>
                    {looks(row).includes("chosen") && <span class="unseen"> chosen</span>}
                  </th>
                  {columns.map(({ head, cell, wide }) => (
                    <td key={head} class={wide ? "num wide" : "num"}>
                      {cell(row)}
                    </td>
                  ))}
                </tr>
                {isOpen(row) && (
                  <tr class="told">
                    <td colSpan={columns.length + 1}>
                      <dl class="facts">
                        {facts(row).map(([about, words]) => (
                          <div key={about}>
                            <dt>{about}</dt>
                            <dd>{words}</dd>
                          </div>
                        ))}
                      </dl>
                    </td>
                  </tr>
                )}
              </Fragment>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
