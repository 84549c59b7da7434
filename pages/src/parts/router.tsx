/** Which page: the history API and one hook. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { withQuery } from "../api";

const MOVED = "mlcd:moved";

/** Go to another page of ours; `replace` leaves no step in the history. */
export function go(to: string, replace = false): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  window.dispatchEvent(new Event(MOVED));
  if (replace) return;
  window.scrollTo(0, 0);
  document.getElementById("content")?.focus({ preventScroll: true });
}

export interface Place {
  path: string;
  query: URLSearchParams;
}

function here(): Place {
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const moved = (): void => setPlace(here());
    window.addEventListener("popstate", moved);
    window.addEventListener(MOVED, moved);
    return () => {
      window.removeEventListener("popstate", moved);
      window.removeEventListener(MOVED, moved);
    };
  }, []);
  return place;
}

/** '/runs/:run' on '/runs/a%20b' -> {run: 'a b'}; null where it does not fit. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split("/");
  const given = path.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== given.length) return null;
  const found: Record<string, string> = {};
  for (const [index, word] of wanted.entries()) {
    const part = given[index] ?? "";
    if (word.startsWith(":")) {
      try {
        found[word.slice(1)] = decodeURIComponent(part);
      } catch {
        return null;
      }
    } else if (word !== part) return null;
  }
  return found;
}

/** Change words of the address and stay on the page; what is '' is left out. */
export function refine(change: Record<string, string>): void {
  const now = Object.fromEntries(new URLSearchParams(location.search));
  go(withQuery(location.pathname, { ...now, ...change }), true);
}

interface LinkProps extends Omit<JSX.HTMLAttributes<HTMLAnchorElement>, "href"> {
  to: string;
  class?: string;
  children?: ComponentChildren;
}

/** A link to a page of ours. A click with a key held is the browser's. */
export function Link({ to, children, ...rest }: LinkProps): JSX.Element {
  const follow = (event: MouseEvent): void => {
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a {...rest} href={to} onClick={follow}>
      {children}
    </a>
  );
}

/** Where the page of a run is. */
export function toRun(run: string, rest = ""): string {
  return `/runs/${encodeURIComponent(run)}${rest}`;
}
