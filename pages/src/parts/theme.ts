/** Light, dark, or the system's theme. public/theme.js applies a stored choice before the first paint. */

import { useState } from "preact/hooks";

export type Theme = "system" | "light" | "dark";
const KEY = "mlcd-theme";
const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

function stored(): Theme {
  const found = document.documentElement.dataset["theme"];
  return found === "light" || found === "dark" ? found : "system";
}

/** The theme, and a turn to the next one. */
export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(stored);
  const turn = (): void => {
    const next = NEXT[theme];
    if (next === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = next;
    try {
      if (next === "system") localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, next);
    } catch {
      // no storage: the choice lasts as long as the page
    }
    setTheme(next);
  };
  return [theme, turn];
}
