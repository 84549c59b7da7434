import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { useCopy } from "../copy";
import { Notice } from "../Notice";

interface Props {
  name: string;
  token: string;
  what?: "token" | "secret";
  onDone: () => void;
}

/** A new token or another secret, shown only once. */
export function Token({ name, token, what = "token", onDone }: Props): JSX.Element {
  const shown = useRef<HTMLElement>(null);
  const [copied, copy] = useCopy(token, `The ${what} of ${name}`, shown);
  return (
    <Notice tone="good">
      <p>
        <b>
          The {what} of {name}.
        </b> It is shown only once; send it over a channel that you trust.
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
