/** How a run stands, in a word: one that nobody drives any more is not searching, whatever its ledger says last. */

import type { Status, Summary } from "../types";

export type Standing = Status | "interrupted";

export function standingOf({ status, driven }: Pick<Summary, "status" | "driven">): Standing {
  return !driven && (status === "searching" || status === "running") ? "interrupted" : status;
}
