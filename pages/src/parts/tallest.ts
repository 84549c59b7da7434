import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** A part that does not shrink while it is `held`: what comes and goes in it moves nothing below. */
export function useTallest(held: boolean): RefObject<HTMLElement> {
  const part = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    if (part.current) part.current.style.minHeight = held ? `${part.current.offsetHeight}px` : "";
  });
  return part;
}
