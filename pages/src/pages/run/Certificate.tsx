/** The certificate as an equation: spent plus reserve within each limit. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { duration, significant, usd } from "../../format";
import { usePrinting } from "../../parts/printing";
import type { Certificate as Doc, Term } from "../../types";

/** One line that unfolds: what is kept to finish, and whether it holds. */
export function Certificate({ of }: { of: Doc }): JSX.Element {
  const [open, setOpen] = useState(false);
  const shown = usePrinting() || open;
  const held = of.terms.every((term) => term.holds);
  const sureness = of.confidence === null ? "" : ` with ${significant(100 * of.confidence, 10)} %`;
  return (
    <section class={`certificate ${held && of.certified ? "held" : ""}`} aria-label="Certificate">
      <details open={shown} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <b>{of.headline}</b>
          {of.terms.length > 0 && (
            <span class={`verdict ${held ? "good" : "bad"}`}>{held ? `holds${sureness}` : "does not hold"}</span>
          )}
          <span class="soft">{of.terms.map(inBrief).join(", ")}</span>
        </summary>
        {of.terms.map((term) => (
          <Equation key={term.unit} {...term} />
        ))}
        <p class="note">{of.sentence}</p>
      </details>
    </section>
  );
}

/** 'at most $93.81 of $100.00'. */
function inBrief({ unit, gone, kept, limit }: Term): string {
  const words = unit === "usd" ? usd : duration;
  return `at most ${words(gone + kept)} of ${words(limit)}`;
}

function Equation({ unit, gone, kept, limit, holds }: Term): JSX.Element {
  const words = unit === "usd" ? usd : duration;
  const parts: [string, number, string][] = [
    ["", gone, unit === "usd" ? "spent" : "elapsed"],
    ["+", kept, "reserve (worst case to finish)"],
    ["=", gone + kept, "worst-case total"],
    [holds ? "≤" : ">", limit, unit === "usd" ? "budget" : "deadline"],
  ];
  return (
    <p class="equation">
      {parts.map(([sign, value, name], i) => (
        <span key={name} class={i === 3 ? (holds ? "term limit-term" : "term limit-term broken") : "term"}>
          {sign && <span class="sign">{sign}</span>}
          <span>
            <b>{words(value)}</b>
            <small>{name}</small>
          </span>
        </span>
      ))}
    </p>
  );
}
