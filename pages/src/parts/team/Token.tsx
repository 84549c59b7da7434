import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { useCopy } from "../copy";
import { Notice } from "../Notice";

/** A new token, shown only once: only its hash is stored. */
export function Token({ name, token, onDone }: { name: string; token: string; onDone: () => void }): JSX.Element {
  const shown = useRef<HTMLElement>(null);
  const [copied, copy] = useCopy(token, `The token of ${name}`, shown);
  return (
    <Notice tone="good">
      <p>
        <b>The token of {name}.</b> It is shown only once; send it over a channel that you trust.
      </p>
      <p class="token">
        <code ref={shown}>{token}</code>
        <button type="button" class="button small" onClick={copy}>
          {copied ? "Copied" : "Copy"}
        </button>
        <button type="button" class="button small" onClick={onDone}>
          Done
        </button>
      </p>
    </Notice>
  );
}
