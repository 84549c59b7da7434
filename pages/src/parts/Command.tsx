import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { Me } from "../types";
import { useCopy } from "./copy";
import { useMe } from "./me";

/** The equivalent shell command, to copy. */
export function Command({ words }: { words: string[] }): JSX.Element {
  const me = useMe();
  const shown = useRef<HTMLElement>(null);
  const said = commandLine(words, me, location.origin);
  const line = said.join(" ");
  const [copied, copy] = useCopy(line, "The command", shown);
  return (
    <p class="command">
      <span class="soft">As a shell command</span>
      <code ref={shown} title={line}>
        {said.map((word, i) => [i > 0 && " ", <span key={i}>{word}</span>])}
      </code>
      <button type="button" class="button small" aria-label="Copy the command" onClick={copy}>
        {copied ? "Copied" : "Copy"}
      </button>
    </p>
  );
}

/** With the server, if there is one, and with shell quoting. */
export function commandLine(words: string[], me: Pick<Me, "mode">, origin: string): string[] {
  return ["mlcd", ...(me.mode === "service" ? ["--server", origin] : []), ...words].map(quoted);
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** {latency_p95: '30ms', instances: ['c5.*', 'g5.*']} -> options of the command line. */
export function optionsOf(options: Record<string, string | string[]>): string[] {
  return Object.entries(options).flatMap(([name, value]) =>
    [value].flat().flatMap((each) => [`--${name.replaceAll("_", "-")}`, each]),
  );
}
