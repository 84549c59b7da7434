/** Where in a YAML text the cursor is. By lines and brackets, since a text that is being typed is seldom valid. */

import { ITEM, type Path } from "./schema";

export interface Place {
  kind: "key" | "value";
  /** Of a key: the block that it is in. Of a value: its key. */
  path: Path;
  /** What of it stands before the cursor. */
  typed: string;
}

const KEY = /^(\s*)(?:- +)?([\w.-]+|"[^"]*"|'[^']*'):(?: +(.*)|)$/;
const plain = (key: string): string => key.replace(/^(["'])(.*)\1$/, "$2");
const depth = (line: string): number => line.search(/\S|$/);

/** Of the text before the cursor, all lines of it; null in a comment, or in a text of several lines. */
export function place(before: string): Place | null {
  const lines = before.split("\n");
  const line = lines.pop() ?? "";
  if (/(^|\s)#/.test(line)) return null;
  const item = /^\s*- +/.exec(line);
  const around = blocks(lines, depth(line), item !== null);
  if (around === null) return null;
  const found = KEY.exec(line);
  const key = found?.[2];
  if (item !== null && key === undefined) return inBrackets(line.slice(item[0].length), [...around, ITEM], "value");
  if (key === undefined) return { kind: "key", path: around, typed: line.trimStart() };
  if (found?.[3] === undefined && !line.endsWith(" ")) return null; // right behind the colon
  return inBrackets(found?.[3] ?? "", [...around, plain(key)], "value");
}

/** The keys that a line of this depth is below. */
function blocks(lines: string[], from: number, isItem: boolean): string[] | null {
  const path: string[] = [];
  let within = isItem ? from + 1 : from; // the items of a list may stand as deep as its key
  for (const line of [...lines].reverse()) {
    const found = KEY.exec(line);
    if (!/^\s*[^\s#]/.test(line) || depth(line) >= within) continue;
    if (isItem && /^\s*- /.test(line) && depth(line) === from) continue;
    within = depth(line);
    if (found?.[2] === undefined) continue;
    if (/^[|>]/.test(found[3] ?? "")) return null;
    path.unshift(plain(found[2]));
  }
  return path;
}

/** In `{a: 1, b: [x, ` and the like: after the last bracket that is open. */
function inBrackets(text: string, path: string[], kind: Place["kind"]): Place {
  const opened: { path: string[]; list: boolean }[] = [];
  let here: Place = { kind, path, typed: "" };
  for (const [token] of text.matchAll(/"[^"]*"?|'[^']*'?|[{}[\],]|:(?=\s|$)|[^{}[\],:"']+|./g)) {
    const last = opened.at(-1);
    if (token === "{" || token === "[") {
      opened.push({ path: token === "[" ? [...here.path, ITEM] : [...here.path], list: token === "[" });
      here = next(opened.at(-1));
    } else if (token === "}" || token === "]") {
      opened.pop();
      here = { kind: "value", path: [...path], typed: token };
    } else if (token === "," && last !== undefined) here = next(last);
    else if (token === ":" && last !== undefined && !last.list)
      here = { kind: "value", path: [...last.path, plain(here.typed.trim())], typed: "" };
    else here = { ...here, typed: (here.typed + token).trimStart() };
  }
  return here;

  function next(inside: { path: string[]; list: boolean } | undefined): Place {
    return { kind: inside?.list ? "value" : "key", path: inside?.path ?? path, typed: "" };
  }
}
