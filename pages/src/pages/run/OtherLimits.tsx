import type { JSX } from "preact";
import { inReport } from "../../parts/report";
import { Link, toRun } from "../../parts/router";

/** The way to what other limits would have decided; a report cannot ask, and says the command. */
export function OtherLimits({ run, tries }: { run: string; tries: string }): JSX.Element {
  return (
    <p class="beside">
      {inReport() ? (
        <code>mlcd what-if {run}</code>
      ) : (
        <Link class="button" to={toRun(run, "/explore")}>
          Try other limits on this
        </Link>
      )}
      <span class="note">{inReport() ? "tries other limits on this. " : ""}From stored {tries}, nothing is spent.</span>
    </p>
  );
}
