/** Copies a text; the button confirms it for a moment. */

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "./announce";

const SAID_MS = 2_000;

/** `shown`: what is selected where there is no clipboard, to be copied by hand. */
export function useCopy(text: string, name: string, shown: RefObject<HTMLElement>): [boolean, () => void] {
  const [copied, setCopied] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      getSelection()?.selectAllChildren(shown.current!); // no clipboard without https
      announce(`${name} is selected`);
      return;
    }
    setCopied(true);
    announce(`${name} is copied`);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setCopied(false), SAID_MS);
  };
  return [copied, () => void copy()];
}
