/** All matching runs as CSV. */

import { get, withQuery } from "../api";
import type { Runs, Summary } from "../types";

const PIECE = 1_000;
const COLUMNS = [
  "run",
  "job",
  "kind",
  "status",
  "owner",
  "team",
  "started_at",
  "on",
  "provenance",
  "goal_words",
  "chosen",
  "tried",
  "elapsed_s",
  "spent_usd",
  "budget_usd",
  "project",
  "tags",
] as const satisfies readonly (keyof Summary)[];

export type Row = Pick<Summary, (typeof COLUMNS)[number]>;

export function toCsv(runs: Row[]): string {
  const lines = runs.map((run) => COLUMNS.map((name) => cell(run[name])).join(","));
  return [COLUMNS.join(","), ...lines, ""].join("\r\n");
}

/** Quoted if needed; a text that a spreadsheet would execute as a formula is escaped. */
function cell(value: string | number | string[] | null): string {
  if (typeof value === "number") return String(value);
  const words = Array.isArray(value) ? value.join(" ") : (value ?? "");
  const safe = /^[=+\-@\t\r]/.test(words) ? `'${words}` : words;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Fetch all matching runs, page by page, and download them as a file. */
export async function download(filters: Record<string, string>): Promise<void> {
  const runs: Summary[] = [];
  let piece: Runs;
  do {
    piece = await get<Runs>(withQuery("/runs", { ...filters, limit: PIECE, offset: runs.length }));
    runs.push(...piece.runs);
  } while (piece.runs.length === PIECE);
  const url = URL.createObjectURL(new Blob([toCsv(runs)], { type: "text/csv" }));
  const link = Object.assign(document.createElement("a"), { href: url, download: "mlcd-runs.csv" });
  link.click();
  URL.revokeObjectURL(url);
}
