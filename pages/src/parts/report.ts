/** A report: the page of one run in a file. It contains the API's answers about the run, and sends no requests. */

export interface Report {
  run: string;
  /** When the last entry was written: the report shows the run's state at that time. */
  written_at: string;
  /** By the end of the path: '' is the run itself, '/ledger' its ledger. */
  answers: Record<string, unknown>;
}

let opened: { run: string; answers: Map<string, unknown> } | null = null;

/** From now on, the report answers every request about the run. */
export function openReport({ run, answers }: Report): void {
  opened = { run, answers: new Map(Object.entries(answers)) };
}

export function inReport(): boolean {
  return opened !== null;
}

/** The report's answer to a path of the API; null if it has none, or on a live page. */
export function answered<T>(path: string): T | null {
  if (opened === null) return null;
  const of = `/runs/${encodeURIComponent(opened.run)}`;
  return path.startsWith(of) ? ((opened.answers.get(path.slice(of.length)) as T | undefined) ?? null) : null;
}
