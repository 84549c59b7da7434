import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, line, withQuery } from "../../api";
import { moment } from "../../format";
import { useGet } from "../../live";
import type { AuditEntry } from "../../types";
import { Notice } from "../Notice";
import { Table, type Column } from "../Table";

const MOST = 50;

interface Page {
  entries: AuditEntry[];
}

/** The audit log, the newest first. */
export function AuditLog(): JSX.Element {
  const first = useGet<Page>(withQuery("/audit", { limit: MOST }));
  const [older, setOlder] = useState<AuditEntry[]>([]);
  const [end, setEnd] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const shown = [...(first.data?.entries ?? []), ...older];
  const more = async (): Promise<void> => {
    try {
      const { entries } = await get<Page>(withQuery("/audit", { before: shown.at(-1)?.seq, limit: MOST }));
      setOlder([...older, ...entries]);
      setEnd(entries.length < MOST);
    } catch (refused) {
      setError(line(refused));
    }
  };
  const failed = error ?? first.error?.message;
  return (
    <section class="section">
      <h2>Audit log</h2>
      {failed !== undefined && <Notice tone="bad">{failed}</Notice>}
      {shown.length > 0 && (
        <Table
          caption="The audit log"
          columns={COLUMNS}
          rows={shown}
          keyOf={(entry) => entry.seq}
          rowClass={(entry) => (entry.outcome === "ok" ? "" : "not-ok")}
        />
      )}
      {shown.length >= MOST && !end && (
        <p class="note total">
          <button type="button" class="button small" onClick={() => void more()}>
            Show older
          </button>
        </p>
      )}
    </section>
  );
}

const COLUMNS: Column<AuditEntry>[] = [
  {
    name: "at",
    head: "When",
    cell: (entry) => (
      <time dateTime={entry.at} title={entry.at}>
        {moment(entry.at)}
      </time>
    ),
  },
  { name: "who", head: "Who", cell: (entry) => entry.who || "–" },
  {
    name: "action",
    head: "Action",
    cell: (entry) => (
      <>
        {entry.action}
        <span class="under phone">{entry.about}</span>
      </>
    ),
  },
  { name: "about", head: "Object", wide: true, cell: (entry) => entry.about || "–" },
  {
    name: "outcome",
    head: "Outcome",
    cell: (entry) => <span class={entry.outcome === "ok" ? "tone-quiet" : "tone-bad"}>{entry.outcome}</span>,
  },
  { name: "detail", head: "Detail", wrap: true, wide: true, cell: (entry) => <span class="soft">{entry.detail}</span> },
];
