/** The lines of a log, with their colours, when they came, and what is looked for. */

import type { JSX, RefObject } from "preact";
import { memo } from "preact/compat";
import type { LogLine } from "../../../types";
import { count } from "../../../format";
import { spansOf, split } from "./ansi";

/** Of lines that came at the same time, as far as it is known, every so many say it: one can always be seen. */
const TIMED_EVERY = 12;

interface Props {
  lines: LogLine[];
  /** What is looked for. */
  sought: string;
  /** The byte of the line that one is at. */
  current: number | null;
  /** When a line came, in words; "" where that is not known. */
  when: (line: LogLine) => string;
  ranked: boolean;
  box: RefObject<HTMLDivElement>;
  onScroll: () => void;
}

export function Text({ lines, sought, current, when, ranked, box, onScroll }: Props): JSX.Element {
  let [before, since] = ["", 0];
  return (
    <div
      ref={box}
      class="paper log"
      tabIndex={0}
      role="log"
      aria-label="Output of the job"
      onScroll={onScroll}
      data-timed={lines.some((line) => when(line) !== "") || undefined}
      data-ranked={ranked || undefined}
    >
      {lines.length === 0 && "No output yet."}
      {lines.map((line) => {
        const came = when(line);
        since = came === before ? since + 1 : 0;
        before = came;
        const news = since % TIMED_EVERY === 0 ? came : "";
        return <Line key={line.at} line={line} sought={sought} isCurrent={line.at === current} came={news} />;
      })}
    </div>
  );
}

interface LineProps {
  line: LogLine;
  sought: string;
  isCurrent: boolean;
  came: string;
}

const Line = memo(({ line, sought, isCurrent, came }: LineProps): JSX.Element => {
  return (
    <div class={isCurrent ? "log-line here" : "log-line"} data-at={line.at} data-came={came}>
      <i data-rank={line.rank ?? ""} />
      {spansOf(line.text).map(({ text, look }, i) => (
        <span key={i} class={look}>
          {split(text, sought).map((piece, j) => (j % 2 ? <mark key={j}>{piece}</mark> : piece))}
        </span>
      ))}
      {line.cut > 0 && <span class="dim"> … {count(line.cut)} characters more: download the log</span>}
      {"\n"}
    </div>
  );
});
