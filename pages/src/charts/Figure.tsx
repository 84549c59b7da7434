/** The frame of a chart: title, summary, legend, and the data as a table. */

import type { ComponentChildren, JSX, RefObject } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { PAPER_PX, usePrinting } from "../parts/printing";
import { Table } from "../parts/Table";
import "./charts.css";
import type { Key } from "./marks";
import type { Drawn } from "./plotFrame";

export type Row = (string | null)[];

export interface Told {
  head: string[];
  rows: Row[];
}

interface Props {
  title: string;
  /** One sentence for screen readers. */
  summary: string;
  note?: string | undefined;
  keys?: Key[];
  table: Told;
  draw: (width: number) => Drawn;
  /** Drawn again when one of these changes. */
  of: readonly unknown[];
  /** Switches beside the title. */
  switches?: ComponentChildren;
  /** Drawn above the chart, with the chart that lies below. */
  over?: (drawn: Drawn, width: number) => ComponentChildren;
}

export function Figure({ title, summary, note, keys = [], table, draw, of, switches, over }: Props): JSX.Element {
  const [asTable, setAsTable] = useState(false);
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const [box, seen] = useWidth();
  const width = usePrinting() ? PAPER_PX : seen;
  const holder = useRef<HTMLDivElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    if (asTable || width < 100) return;
    const made = draw(width);
    made.setAttribute("role", "img");
    made.setAttribute("aria-label", `${title}. ${summary}`);
    for (const part of made.querySelectorAll("g[aria-label]")) part.removeAttribute("aria-label"); // one image, one name
    holder.current?.replaceChildren(made);
    setDrawn(made);
  }, [width, asTable, ...of]);
  return (
    <figure class="chart" aria-labelledby={id}>
      <div class="chart-head">
        <h2 id={id}>{title}</h2>
        {switches}
        <button type="button" class="quiet" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          {asTable ? "Show as chart" : "Show as table"}
        </button>
      </div>
      <div ref={box} class="chart-box">
        {asTable ? (
          <Listed title={title} {...table} />
        ) : (
          <>
            <div ref={holder} />
            {over && drawn && over(drawn, width)}
          </>
        )}
      </div>
      {!asTable && keys.length > 0 && (
        <ul class="keys">
          {keys.map(({ mark, words }) => (
            <li key={words}>
              <svg viewBox="-8 -8 16 16" width="16" height="16" aria-hidden="true">
                {mark}
              </svg>
              {words}
            </li>
          ))}
        </ul>
      )}
      {note && <figcaption>{note}</figcaption>}
    </figure>
  );
}

function Listed({ title, head, rows }: Told & { title: string }): JSX.Element {
  const columns = head.map((name, i) => ({ name, head: name, num: i > 0, cell: (row: Row) => row[i] ?? "–" }));
  return <Table caption={title} columns={columns} rows={rows} keyOf={(row) => rows.indexOf(row)} />;
}

/** The width of an element, as it changes; the first one before anything is painted, so that nothing below it moves. */
function useWidth(): [RefObject<HTMLDivElement>, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    setWidth(Math.round(element.getBoundingClientRect().width));
    const watching = new ResizeObserver(([entry]) => setWidth(Math.round(entry!.contentRect.width)));
    watching.observe(element);
    return () => watching.disconnect();
  }, []);
  return [box, width];
}
