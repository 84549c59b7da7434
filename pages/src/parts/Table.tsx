import type { ComponentChildren, JSX } from "preact";

export interface Column<T> {
  /** Its key, and that of its order where `sorted` is given. */
  name: string;
  head: string;
  cell: (row: T) => ComponentChildren;
  /** Numbers stand at the right. */
  num?: boolean;
  /** Long words may break. */
  wrap?: boolean;
  /** A click on the head orders by it. */
  sorts?: boolean;
  /** Not at phone width. */
  wide?: boolean;
}

interface TableProps<T> {
  /** Read out, not shown. */
  caption: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string | number;
  rowClass?: (row: T) => string;
  sorted?: { by: string; down: boolean };
  onSort?: (by: string) => void;
  /** The sums, a cell for each column. */
  total?: string[];
}

/** A table as a table: the first cell of a row is its heading, and it scrolls by itself where it is too wide. */
export function Table<T>({ caption, columns, rows, keyOf, rowClass, sorted, onSort, total }: TableProps<T>): JSX.Element {
  const looks = (column: Column<T>): string =>
    [column.num && "num", column.wrap && "wrap", column.wide && "wide"].filter(Boolean).join(" ");
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={looks(column)} aria-sort={order(column.name, sorted)}>
                {column.sorts && onSort ? (
                  <button type="button" class="sort" onClick={() => onSort(column.name)}>
                    {column.head}
                    <span aria-hidden="true">{sorted?.by === column.name ? (sorted.down ? " ↓" : " ↑") : ""}</span>
                  </button>
                ) : (
                  column.head
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} class={rowClass?.(row)}>
              {columns.map((column, index) =>
                index === 0 ? (
                  <th key={column.name} scope="row" class={looks(column)}>
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.name} class={looks(column)}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
        {total && (
          <tfoot>
            <tr>
              {columns.map((column, index) => (
                <td key={column.name} class={looks(column)}>
                  {total[index]}
                </td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
    </div>
  );
}

function order(
  name: string,
  sorted: { by: string; down: boolean } | undefined,
): "ascending" | "descending" | undefined {
  if (sorted?.by !== name) return undefined;
  return sorted.down ? "descending" : "ascending";
}
