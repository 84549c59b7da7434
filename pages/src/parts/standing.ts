/** A run's status in a word: an unfinished run that is not driven is interrupted, whatever its ledger says. */

import type { Status, Summary } from "../types";

export type Standing = Status | "interrupted";

export function standingOf({ status, driven }: Pick<Summary, "status" | "driven">): Standing {
  return !driven && (status === "searching" || status === "running") ? "interrupted" : status;
}
