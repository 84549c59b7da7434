/** What is submitted, and what a check says of it. */

import type { Kind } from "./run";

/** What is submitted or checked. Options are words, as on the command line. */
export interface Asked {
  kind: Kind;
  job?: string;
  /** Of the job file: for messages, and for a job that has no name of its own. */
  name?: string;
  options: Record<string, string | string[]>;
  launch?: boolean;
  /** Agrees to spend real money, after `asks` was shown. */
  yes?: boolean;
  upload?: string | null;
  knobs?: string | null;
  model?: string | null;
}

export interface Checked {
  job: string;
  goal_words: string;
  /** Null where only trying tells. */
  configurations: number | null;
  types: string[];
  on: string;
  /** What the job may spend. */
  budget_usd?: number | null;
  left_usd: number | null;
}

export interface Uploaded {
  upload: string;
  name: string;
  size: number;
  /** Parameters in billions, weights in 2**20 bytes. */
  facts: { family: string; inputs: string; weights_mb: number | null; parameters: number | null; note: string };
  /** Shares are null where no pass could be made. */
  operators: { kind: string; count: number; share: number | null }[];
}

export interface Example {
  name: string;
  kind: Kind;
  text: string;
}
