/** A table with expandable rows: number, name, a few columns, and details below. */

import type { ComponentChildren, JSX } from "preact";
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { useNewest } from "../../parts/newest";
import { usePrinting } from "../../parts/printing";

export interface Cell<T> {
  head: string;
  cell: (row: T) => ComponentChildren;
  /** Not at phone width. */
  wide?: boolean;
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

export function Expandable<T>({ caption, word, rows, number, name, looks, columns, facts }: Props<T>): JSX.Element {
  const [open, setOpen] = useState<Set<number>>(new Set());
  const printing = usePrinting();
  const [shown, before] = useNewest(rows);
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
          <caption>{caption}. Expand a row for details.</caption>
          <thead>
            <tr>
              <th scope="col">{word}</th>
              {columns.map(({ head, wide }) => (
                <th key={head} scope="col" class={wide ? "num wide" : "num"}>
                  {head}
                </th>
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
