/** A run's status in a word: an unfinished run that is not driven is interrupted, whatever its ledger says. */

import type { Status, Summary } from "../types";

export type DisplayedStatus = Status | "interrupted";

export function displayedStatusOf({ status, driven }: Pick<Summary, "status" | "driven">): DisplayedStatus {
  return !driven && (status === "searching" || status === "running") ? "interrupted" : status;
}
