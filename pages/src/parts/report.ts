/** A report: the page of one run in a file. What the API answered about the run is inside it, and nothing is asked. */

export interface Report {
  run: string;
  /** When the last entry was written: what the report shows is how the run stood then. */
  written_at: string;
  /** By the end of the path: '' is the run itself, '/ledger' its ledger. */
  answers: Record<string, unknown>;
}

let opened: { run: string; answers: Map<string, unknown> } | null = null;

/** From here on, every question about the run is answered by the report. */
export function openReport({ run, answers }: Report): void {
  opened = { run, answers: new Map(Object.entries(answers)) };
}

export function inReport(): boolean {
  return opened !== null;
}

/** What the report answers to a path of the API; null where it has no answer, or on a live page. */
export function answered<T>(path: string): T | null {
  if (opened === null) return null;
  const of = `/runs/${encodeURIComponent(opened.run)}`;
  return path.startsWith(of) ? ((opened.answers.get(path.slice(of.length)) as T | undefined) ?? null) : null;
}
