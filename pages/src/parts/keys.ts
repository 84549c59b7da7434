/** Page-wide keyboard shortcuts: not while typing, not with Ctrl, Alt or Meta. */

import { useLayoutEffect } from "preact/hooks";

export function useKeys(keys: Record<string, () => void>): void {
  // In the same moment as the page is drawn: a key that is pressed at once must not be lost.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const at = event.target as HTMLElement;
      if (event.ctrlKey || event.altKey || event.metaKey || at.isContentEditable) return;
      if (/^(input|textarea|select)$/i.test(at.tagName)) return;
      const act = keys[event.key];
      if (act === undefined) return;
      event.preventDefault();
      act();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  });
}
