import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** An element that does not shrink while it is `held`, so that the content below does not move. */
export function useStableHeight(held: boolean): RefObject<HTMLElement> {
  const part = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    if (part.current) part.current.style.minHeight = held ? `${part.current.offsetHeight}px` : "";
  });
  return part;
}
