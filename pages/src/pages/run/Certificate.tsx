/** The certificate as an equation: spent plus reserve within each limit. */

import type { JSX } from "preact";
import { duration, significant, usd } from "../../format";
import type { Certificate as Doc, Term } from "../../types";

export function Certificate({ of }: { of: Doc }): JSX.Element {
  const held = of.terms.every((term) => term.holds);
  const sureness = of.confidence === null ? "" : ` with ${significant(100 * of.confidence, 10)} %`;
  return (
    <section class={`certificate ${held && of.certified ? "held" : ""}`} aria-label="Certificate">
      <h2>
        {of.headline}
        {of.terms.length > 0 && (
          <span class={`verdict ${held ? "good" : "bad"}`}>{held ? `holds${sureness}` : "does not hold"}</span>
        )}
      </h2>
      {of.terms.map((term) => (
        <Equation key={term.unit} {...term} />
      ))}
      <p class="note">{of.sentence}</p>
    </section>
  );
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
