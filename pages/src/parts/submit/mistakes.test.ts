import { expect, it } from "vitest";
import { withoutKey } from "./Mistakes";

it.each([
  ["mlcd.budget", "budget 'abc': expected dollars", "'abc': expected dollars"],
  ["mlcd.work", "work: say either", "say either"],
  ["mlcd.wrok", "unknown key 'wrok': did you mean 'work'?", "unknown key 'wrok': did you mean 'work'?"],
  ["mlcd.on", "once more", "once more"],
  ["", "not YAML", "not YAML"],
])("a mistake of %s names its key once", (key, message, told) => {
  expect(withoutKey({ key, message })).toBe(told);
});
