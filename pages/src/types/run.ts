/** Runs: one line of the list, and all that the page of one shows. */

export type Kind = "train" | "scale" | "serve" | "tune" | "functions";

export type Status =
  "queued" | "refused" | "searching" | "decided" | "infeasible" | "running" | "finished" | "failed" | "stopped";

export type Action = "launch" | "resume" | "stop" | "down";

export interface Summary {
  run: string;
  kind: Kind;
  job: string;
  status: Status;
  driven: boolean;
  owner: string | null;
  team: string | null;
  started_at: string;
  on: string;
  provenance: string;
  goal: string;
  goal_words: string;
  tried: number;
  chosen: string | null;
  spent_usd: number;
  elapsed_s: number;
  budget_usd: number | null;
  deadline_s: number | null;
  because: string;
}

export interface Runs {
  runs: Summary[];
  total: number;
  spent_usd: number;
}

export interface Share {
  /** Null: runs that nobody owns, of the command line. */
  name: string | null;
  usd: number;
  runs: number;
}

export interface Month {
  month: string;
  usd: number;
  runs: number;
}

export interface Spend {
  by_person: Share[];
  by_team: Share[];
  by_month: Month[];
  /** live, simulated, recorded: only what is live is real money. */
  by_provenance: Share[];
}

/** What the whole job would take on a configuration; `worst`: at the slow end of its rate. */
export interface Finish {
  seconds: number;
  usd: number;
  worst_seconds: number;
  worst_usd: number;
}

/** One probe or trial, in the order it was made. */
export interface Step {
  number: number;
  series: string;
  label: string;
  nodes: number | null;
  batch: number | null;
  rate: number | null;
  low: number | null;
  high: number | null;
  outcome: string;
  usd: number;
  seconds: number;
  because: string;
  detail: string;
  certified: boolean | null;
  chosen: boolean;
  finish: Finish | null;
}

export interface SpendPoint {
  elapsed_s: number;
  spent_usd: number;
  kept_usd: number | null;
  kept_s: number | null;
  label: string;
  purpose?: "probe" | "run";
}

export interface Spending {
  budget_usd: number | null;
  deadline_s: number | null;
  points: SpendPoint[];
}

export interface UnderWay {
  label: string;
  purpose: string;
  configuration: string;
  because: string;
  worst_usd: number | null;
  worst_s: number | null;
  since_s: number | null;
}

/** Where a live launch stands, `elapsed_s` after its machines were asked for; a probe has no share. */
export interface Headway {
  label: string;
  purpose: "probe" | "run";
  where: string;
  at: string;
  elapsed_s: number;
  usd: number;
  words: string;
  share: number | null;
  rate: number | null;
  unit: string;
  left_s: number | null;
}

export interface Term {
  unit: "usd" | "s";
  gone: number;
  kept: number;
  limit: number;
  holds: boolean;
}

export interface Certificate {
  certified: boolean;
  confidence: number | null;
  headline: string;
  sentence: string;
  terms: Term[];
}

export interface Refusal {
  label: string;
  because: string;
}

export interface Operator {
  kind: string;
  count: number;
  share: number;
}

export interface Trial {
  number: number;
  label: string;
  knobs: Record<string, unknown>;
  rate: number | null;
  p50_ms: number | null;
  p95_ms: number | null;
  p99_ms: number | null;
  usd_per_million: number | null;
  keeps: boolean | null;
  chosen: boolean;
  because: string;
  outcome?: string;
  usd_per_hour?: number | null;
  [more: string]: unknown;
}

export interface Serving {
  operators: Operator[];
  trials: Trial[];
  caps: { figure: string; at_most_ms: number; [more: string]: unknown }[];
  unit: string;
  min_rate: number | null;
  [more: string]: unknown;
}

export interface Stage {
  stage: number;
  trials: number;
  epochs: number;
  functions: number;
  memory_mb: number;
  storage: string;
  seconds: number;
  usd: number;
}

export interface Plan {
  name: string;
  method: string;
  chosen: boolean;
  seconds: number;
  usd: number;
  stages: Stage[];
}

export interface Functions {
  tuning: boolean;
  plans: Plan[];
  even_split: unknown;
  boundary: { seconds: number; usd: number; label: string; storage: string; knee: boolean; used: boolean }[];
  done: { stage?: number; epoch?: number; label: string; seconds: number; usd: number; loss: number | null }[];
}

export interface View {
  summary: Summary;
  path: Step[];
  spend: Spending;
  under_way: UnderWay[];
  warnings: string[];
  certificate: Certificate | null;
  refusals: Refusal[];
  next: string;
  answer: { sentence: string; more: string };
  cards: { name: string; value: string; note: string }[];
  actions: Action[];
  serving: Serving | null;
  functions: Functions | null;
  document: Record<string, unknown>;
  progress: Headway[];
}

export interface TradeoffPoint {
  label: string;
  series: string;
  seconds: number;
  usd: number;
  worst_seconds: number | null;
  worst_usd: number | null;
  certified: boolean;
  frontier: boolean;
  chosen: boolean;
  knee: boolean;
  measured: boolean;
}

/** Factors of the least time and of the least cost until the target. */
export interface Ranked {
  label: string;
  series: string;
  time_factor: number;
  cost_factor: number;
  chosen: boolean;
  measured: boolean;
  frontier: boolean;
  knee: boolean;
}

export interface Tradeoff {
  points: TradeoffPoint[];
  /** Of an elastic run that claims no time; `points` are then of all the work. */
  ranking: Ranked[];
  spent_usd: number;
  elapsed_s: number;
  budget_usd: number | null;
  deadline_s: number | null;
  ranges: { budget: [number, number] | null; deadline: [number, number] | null };
}

export interface WhatIf {
  run: string;
  goal: string;
  goal_words: string;
  decision: Record<string, unknown>;
  words: string;
  /** The configuration that it would choose. */
  label: string | null;
  certificate: Certificate | null;
}

/** A table in words; `chosen`: rows, counted from 0. */
export interface RunTable {
  title: string;
  note: string;
  columns: { name: string; number: boolean }[];
  rows: string[][];
  total: string[];
  chosen: number[];
  folded: boolean;
}

export interface RunTables {
  run: string;
  tables: RunTable[];
}

/** One event of a stream: an entry of the ledger, in words. */
export interface News {
  seq: number;
  run: string;
  kind: string;
  elapsed_s: number;
  written_at: string;
  words: string;
}

export interface LedgerRow {
  seq: number;
  at: string;
  elapsed_s: number;
  kind: string;
  configuration: string;
  usd: number | null;
  seconds: number | null;
  because: string;
  spent_usd: number;
}
