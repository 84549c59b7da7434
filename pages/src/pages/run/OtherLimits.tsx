import type { JSX } from "preact";
import { inReport } from "../../parts/report";
import { Link, toRun } from "../../parts/router";

/** A link to the what-if page; in a report, the command instead. */
export function OtherLimits({ run, tries }: { run: string; tries: string }): JSX.Element {
  return (
    <p class="beside">
      {inReport() ? (
        <code>mlcd what-if {run}</code>
      ) : (
        <Link class="button" to={toRun(run, "/explore")}>
          Try other limits
        </Link>
      )}
      <span class="note">{inReport() ? "tries other limits. " : ""}From stored {tries}, at no cost.</span>
    </p>
  );
}
