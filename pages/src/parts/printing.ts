/** Paper: while the browser prints, nothing is folded, and charts are as wide as a sheet. */

import { options } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Pixels of a chart on A4 or Letter, within the margins of the style sheet. */
export const PAPER_PX = 690;

export function usePrinting(): boolean {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const begin = (): void => atOnce(() => setPrinting(true));
    const end = (): void => setPrinting(false);
    window.addEventListener("beforeprint", begin);
    window.addEventListener("afterprint", end);
    return () => {
      window.removeEventListener("beforeprint", begin);
      window.removeEventListener("afterprint", end);
    };
  }, []);
  return printing;
}

/** The browser prints what is there when its event has been handled: the change is drawn within it. */
function atOnce(change: () => void): void {
  const before = options.debounceRendering;
  options.debounceRendering = (draw) => draw();
  change();
  if (before === undefined) delete options.debounceRendering;
  else options.debounceRendering = before;
}
