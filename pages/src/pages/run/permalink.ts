/** What is asked on a page of trade-offs is in its address: it can be shared, and is there again after a reload. */

import { useEffect } from "preact/hooks";
import { withQuery } from "../../api";
import { useSettled } from "../../live";
import { go } from "../../parts/router";

/** Browsers allow so many changes of an address in a while; a drag would make more. */
const SETTLED_MS = 300;

/** A limit of the address: 'none' is null, and what cannot be read is as the run had it. */
export function fromAddress<T>(name: string, parse: (words: string) => T | null, had: T | null): T | null {
  const words = new URLSearchParams(location.search).get(name);
  if (words === null) return had;
  return words === "none" ? null : (parse(words) ?? had);
}

export function goalOfAddress(of: string[], had: string): string {
  return fromAddress("goal", (words) => (of.includes(words) ? words : null), had) ?? had;
}

/** Keep the address as what is asked: only what differs from the run's own is said. */
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
