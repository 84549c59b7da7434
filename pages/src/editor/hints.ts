/** What the schema of a file says, as completions and as tips over its keys. */

import {
  type Completion,
  type CompletionContext,
  type CompletionResult,
  pickedCompletion,
  startCompletion,
} from "@codemirror/autocomplete";
import type { Extension } from "@codemirror/state";
import { type EditorView, hoverTooltip } from "@codemirror/view";
import { place, type Place } from "./place";
import { type Key, keys, meaning, type Schema, values } from "./schema";

/** Keys as one types; values as soon as their key is written. */
export function completions(schema: Schema) {
  return (context: CompletionContext): CompletionResult | null => {
    const here = place(context.state.sliceDoc(0, context.pos));
    if (here === null || (here.kind === "key" && here.typed === "" && !context.explicit)) return null;
    const options = here.kind === "key" ? keysHere(schema, here, context) : valuesHere(schema, here);
    if (options.length === 0) return null;
    return { from: context.pos - here.typed.length, options, validFor: /^[\w.$-]*$/ };
  };
}

function valuesHere(schema: Schema, here: Place): Completion[] {
  return values(schema, here.path).map((label) => ({ label, type: "constant" }));
}

function keysHere(schema: Schema, here: Place, context: CompletionContext): Completion[] {
  const line = context.state.doc.lineAt(context.pos);
  const isAlone = line.text.slice(0, context.pos - line.from).trim() === here.typed;
  const indent = " ".repeat(line.text.search(/\S|$/) + 2);
  return keys(schema, here.path).map((key) => ({
    label: key.name,
    type: "property",
    ...(key.meaning && { info: key.meaning }),
    apply: (view: EditorView, completion: Completion, from: number, to: number) => {
      const rest = view.state.sliceDoc(to, line.to).startsWith(":") ? "" : after(key, isAlone ? indent : null);
      view.dispatch({
        changes: { from, to, insert: key.name + rest },
        selection: { anchor: from + key.name.length + rest.length },
        annotations: pickedCompletion.of(completion),
        scrollIntoView: true,
      });
      if (rest === ": ") startCompletion(view);
    },
  }));
}

/** A key with only keys below it is followed by a new line; within brackets there are none. */
function after(key: Key, indent: string | null): string {
  return key.block && indent !== null ? `:\n${indent}` : ": ";
}

/** What a key means, over it and over its value. */
export function meanings(schema: Schema): Extension {
  return hoverTooltip((view, at) => {
    const line = view.state.doc.lineAt(at);
    const before = /[\w.-]*$/.exec(line.text.slice(0, at - line.from))?.[0].length ?? 0;
    const after = /^[\w.-]*/.exec(line.text.slice(at - line.from))?.[0].length ?? 0;
    const word = line.text.slice(at - line.from - before, at - line.from + after);
    const here = word ? place(view.state.sliceDoc(0, at - before)) : null;
    if (here === null) return null;
    const words = meaning(schema, here.kind === "key" ? [...here.path, word] : here.path);
    if (!words) return null;
    return {
      pos: at - before,
      end: at + after,
      above: true,
      create: () => {
        const dom = document.createElement("div");
        dom.className = "cm-meaning";
        dom.textContent = words;
        return { dom };
      },
    };
  });
}
