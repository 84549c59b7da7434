/** The limits of a trade-off page are in its address, so that it can be shared and reloaded. */

import { useEffect } from "preact/hooks";
import { withQuery } from "../../api";
import { useSettled } from "../../live";
import { go } from "../../parts/router";

/** Browsers limit how often an address may change; a drag would exceed that. */
const SETTLED_MS = 300;

/** A limit in the address: 'none' is null; an invalid one is replaced by the run's own. */
export function fromAddress<T>(name: string, parse: (words: string) => T | null, had: T | null): T | null {
  const words = new URLSearchParams(location.search).get(name);
  if (words === null) return had;
  return words === "none" ? null : (parse(words) ?? had);
}

export function goalOfAddress(of: string[], had: string): string {
  return fromAddress("goal", (words) => (of.includes(words) ? words : null), had) ?? had;
}

/** Write the limits to the address: only those that differ from the run's own. */
export function useAddress(words: Record<string, string>, own: Record<string, string>): Record<string, string> {
  const changed = differing(words, own);
  const address = useSettled(withQuery(location.pathname, changed), SETTLED_MS);
  useEffect(() => {
    if (address !== location.pathname + location.search) go(address, true);
  }, [address]);
  return changed;
}

function differing(words: Record<string, string>, own: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(words).filter(([name, value]) => own[name] !== value));
}
