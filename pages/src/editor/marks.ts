/** Mistakes as marks under the text they are about. */

import { syntaxTree } from "@codemirror/language";
import type { Diagnostic } from "@codemirror/lint";
import type { EditorState } from "@codemirror/state";
import type { SyntaxNode } from "@lezer/common";
import type { JobMistake } from "../types";

interface Span {
  from: number;
  to: number;
}

/** Of a line and a column that count from 1, columns in characters: some are two units of a string. */
export function position(state: EditorState, line: number, column: number): number {
  const { from, text } = state.doc.line(Math.min(Math.max(line, 1), state.doc.lines));
  return from + [...text].slice(0, column - 1).join("").length;
}

export function diagnostic(state: EditorState, mistake: JobMistake): Diagnostic {
  const { message, instead } = mistake;
  const at = position(state, mistake.line, mistake.column);
  const pair = pairAt(syntaxTree(state).resolveInner(at, 1), at);
  const ofKey = /^(unknown key|'.*' is written twice)/.test(message);
  const span = (ofKey ? pair?.getChild("Key") : pair) ?? wordAt(state, at);
  const shown = { from: span.from, to: Math.min(span.to, state.doc.lineAt(span.from).to) };
  const wrong = ofKey ? span : (pair?.lastChild ?? null);
  if (instead === null || wrong === null) return { ...shown, severity: "error", message };
  return {
    ...shown,
    severity: "error",
    message,
    actions: [
      {
        name: `Write ${instead}`,
        apply: (view) => view.dispatch({ changes: { from: wrong.from, to: wrong.to, insert: instead } }),
      },
    ],
  };
}

/** The key and value whose key begins here. */
function pairAt(node: SyntaxNode, at: number): SyntaxNode | null {
  for (let each: SyntaxNode | null = node; each !== null && each.from === at; each = each.parent) {
    if (each.name === "Pair") return each;
  }
  return null;
}

/** What stands here, and at least one character where a line has one. */
function wordAt(state: EditorState, at: number): Span {
  const line = state.doc.lineAt(at);
  const word = /^[\w.$-]+/.exec(line.text.slice(at - line.from));
  return { from: at, to: at + (word?.[0].length ?? Math.min(1, line.to - at)) };
}
