/** The submission form: the options of each kind of run, the request, and which option an error is about. */

import type { ApiError } from "../../api";
import type { Asked, Kind, Uploaded } from "../../types";
import { optionsOf } from "../Command";

export type Submitted = Kind;

export interface Option {
  name: string;
  label: string;
  example: string;
  of?: string[];
}

export const KINDS: { kind: Submitted; words: string }[] = [
  { kind: "train", words: "Find where to train, within a budget and a deadline." },
  { kind: "scale", words: "Find workers and batch while the job runs." },
  { kind: "tune", words: "Try hyperparameters on functions, in stages." },
  { kind: "serve", words: "Find how to serve a model, by load tests." },
];

const BUDGET: Option = { name: "budget", label: "Budget", example: "$100" };
const DEADLINE: Option = { name: "deadline", label: "Deadline", example: "6h" };
const SEED: Option = { name: "seed", label: "Seed", example: "0" };
const INSTANCES: Option = { name: "instances", label: "Instance types", example: "c5.*, g5.xlarge" };

function goal(example: string, ...of: string[]): Option {
  return { name: "goal", label: "Goal", example, of };
}

function latency(name: string, label: string): Option {
  return { name, label, example: "30ms" };
}

/** The common options. */
export const OPTIONS: Record<Submitted, Option[]> = {
  train: [goal("as in the job", "fastest", "cheapest"), BUDGET, DEADLINE],
  scale: [goal("as in the job", "knee", "fastest", "cheapest"), BUDGET, DEADLINE],
  tune: [
    goal("as in the job", "fastest", "cheapest"),
    BUDGET,
    DEADLINE,
    { name: "trials", label: "Trials", example: "64" },
  ],
  serve: [
    goal("most per dollar", "per-dollar", "cheapest", "fastest"),
    latency("latency_p95", "p95 at most"),
    { name: "min_rps", label: "Requests per second", example: "200" },
    { name: "trials", label: "Most trials", example: "10" },
    BUDGET,
    DEADLINE,
  ],
};

/** The other options. */
export const MORE_OPTIONS: Record<Submitted, Option[]> = {
  train: [
    { name: "nodes", label: "Nodes", example: "1..16" },
    INSTANCES,
    { name: "parallel", label: "Parallel probes", example: "4" },
    { name: "method", label: "Method", example: "net-value" },
    SEED,
  ],
  scale: [
    { name: "workers", label: "Workers", example: "1..8" },
    { name: "batch", label: "Batches", example: "64..1024" },
    { name: "target", label: "Target", example: "accuracy >= 0.97" },
    { name: "search", label: "Search", example: "as in the job", of: ["full", "partial", "none"] },
    INSTANCES,
    SEED,
  ],
  tune: [
    { name: "eta", label: "Reduction factor (eta)", example: "2" },
    { name: "epochs_per_stage", label: "Epochs per stage", example: "2" },
    { name: "functions", label: "Functions", example: "1..50" },
    { name: "memory", label: "Memory, MB", example: "512..1769" },
    SEED,
  ],
  serve: [
    latency("latency_p50", "p50 at most"),
    latency("latency_p99", "p99 at most"),
    latency("ttft_p95", "First token, p95"),
    latency("itl_p95", "Next token, p95"),
    { name: "shape", label: "Free axes", example: "sequence=128" },
    { name: "knowledge", label: "Knowledge base", example: "cpu" },
    { name: "method", label: "Method", example: "grey-box" },
    SEED,
  ],
};

/** Labels, for every kind of run. */
export const LABELS: Option[] = [
  { name: "project", label: "Project", example: "vision" },
  { name: "tag", label: "Tags", example: "nightly, ci" },
];

/** The state of the submission form. */
export interface Draft {
  kind: Submitted;
  name: string;
  job: string;
  model: Uploaded | null;
  /** Of a recorded cloud: the name of a model there. */
  recorded: string;
  knobs: string;
  words: Record<string, string>;
  launch: boolean;
}

export const EMPTY: Draft = {
  kind: "train",
  name: "job.yaml",
  job: "",
  model: null,
  recorded: "",
  knobs: "",
  words: {},
  launch: false,
};

/** Which kind of run a job file is for, by the blocks that it has. */
export function kindOf(text: string): Submitted {
  if (/^\s+tuning:/m.test(text)) return "tune";
  return /^\s+(?:scale|elastic):/m.test(text) ? "scale" : "train";
}

/** The options of an earlier submission as values of the form. */
export function formValuesOf(options: Record<string, unknown>): Record<string, string> {
  const said = Object.entries(options).flatMap(([name, value]): [string, string][] => {
    if (Array.isArray(value)) return [[name, value.join(", ")]];
    return ["string", "number"].includes(typeof value) ? [[name, String(value)]] : [];
  });
  return Object.fromEntries(said);
}

/** Whether a place costs real money; the same rule as in mlcd/core/runs/real_money.py. */
export function rents(on: string): boolean {
  const [kind, platform] = on.split(":");
  return kind === "skypilot" || (kind === "functions" && !["", "simulated", "localhost", undefined].includes(platform));
}

export function isReady(draft: Draft): boolean {
  return draft.kind === "serve" ? draft.model !== null || draft.recorded.trim() !== "" : draft.job.trim() !== "";
}

/** The draft in the API's format: only options of this kind, and only those that were set. */
export function submissionOf(draft: Draft): Asked {
  const known = ["on", ...[...OPTIONS[draft.kind], ...MORE_OPTIONS[draft.kind]].map(({ name }) => name)];
  const options: Asked["options"] = {};
  const labels = labelsOf(draft);
  for (const name of known) {
    const value = draft.words[name]?.trim();
    if (value) options[name] = name === "instances" || name === "shape" ? value.split(/[\s,]+/).filter(Boolean) : value;
  }
  if (draft.kind !== "serve")
    return { kind: draft.kind, job: draft.job, name: draft.name, options, launch: draft.launch, ...labels };
  const knobs = draft.knobs.trim() ? draft.knobs : null;
  if (draft.model === null) return { kind: "serve", options, model: draft.recorded.trim(), knobs, ...labels };
  return { kind: "serve", options, upload: draft.model.upload, knobs, ...labels };
}

function labelsOf({ words }: Draft): Pick<Asked, "project" | "tags"> {
  const project = words["project"]?.trim();
  const tags = (words["tag"] ?? "").split(/[\s,]+/).filter(Boolean);
  return { ...(project && { project }), ...(tags.length > 0 && { tags }) };
}

/** The equivalent command line, with files in the current folder. */
export function shellCommand(draft: Draft): string[] {
  const { kind, options, model, knobs, project, tags = [] } = submissionOf(draft);
  const labels = optionsOf({ ...(project && { project }), tag: tags });
  const file = kind === "serve" ? (model ?? draft.model?.name ?? "") : draft.name;
  const then = kind === "serve" ? [] : [draft.launch ? "--yes" : "--decide-only"];
  return [kind, file, ...(knobs ? ["--knobs", "knobs.yaml"] : []), ...optionsOf(options), ...labels, ...then];
}

export interface Mistake {
  /** 'job', 'knobs', 'model', the name of an option, or '' for the whole. */
  about: string;
  words: string;
  line: number | null;
}

/** "budget 'abc': expected dollars" is about the budget, "job.yaml:3:3: work: ..." about line 3 of the file. */
export function mistake(error: ApiError, draft: Draft): Mistake {
  const words = error.message;
  const place = /^(\S+?):(\d+)(?::\d+)?: /.exec(words);
  if (place !== null) {
    const about = place[1]?.includes("knobs") || draft.kind === "serve" ? "knobs" : "job";
    return { about, words, line: Number(place[2]) };
  }
  if (error.leftUsd !== null || /\bbudget\b/.test(words)) return { about: "budget", words, line: null };
  const first = /^(\w+)[ :]/.exec(words)?.[1] ?? "";
  const option = ["on", ...[...OPTIONS[draft.kind], ...MORE_OPTIONS[draft.kind], ...LABELS].map(({ name }) => name)].includes(first);
  if (option) return { about: first, words, line: null };
  return { about: words.startsWith(draft.name) ? "job" : "", words, line: null };
}
