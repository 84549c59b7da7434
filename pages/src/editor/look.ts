/** How the editor looks: the colours of the page, so that it turns with its theme. */

import { HighlightStyle } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

export const WORDS = HighlightStyle.define([
  { tag: tags.definition(tags.propertyName), color: "var(--c0)" },
  { tag: [tags.string, tags.content], color: "var(--ink)" },
  { tag: [tags.special(tags.string), tags.attributeValue], color: "var(--c2)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--soft)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: "var(--soft)" },
  { tag: [tags.labelName, tags.typeName, tags.keyword, tags.meta], color: "var(--c3)" },
]);

const RAISED = { backgroundColor: "var(--page)", color: "var(--ink)", border: "1px solid var(--line)" };

export const LOOK = EditorView.theme({
  "&": { backgroundColor: "var(--page)", color: "var(--ink)", font: ".8125rem/1.55 var(--mono)" },
  ".cm-scroller": { font: "inherit", lineHeight: "1.55" },
  ".cm-content": { padding: "10px 0", caretColor: "var(--ink)" },
  ".cm-line": { padding: "0 14px 0 8px" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--soft)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent) 6%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--sunken)", color: "var(--ink)" },
  ".cm-placeholder": { color: "var(--soft)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--tint)", color: "inherit" },
  ".cm-selectionMatch, .cm-searchMatch": { backgroundColor: "var(--caution-tint)" },
  ".cm-searchMatch-selected": { outline: "2px solid var(--caution)" },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--limit) 1.5px",
    textUnderlineOffset: "3px",
    textDecorationSkipInk: "none",
  },
  ".cm-lintPoint::after": { borderBottomColor: "var(--limit)" },
  ".cm-tooltip": { ...RAISED, borderRadius: "6px", boxShadow: "0 8px 28px rgba(0, 0, 0, .16)", maxWidth: "min(440px, 86vw)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { font: "inherit", fontFamily: "var(--mono)", maxHeight: "14em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 10px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionIcon": { display: "none" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-completionInfo, .cm-meaning, .cm-diagnostic": { font: ".8125rem/1.5 system-ui, sans-serif", padding: "6px 10px" },
  ".cm-tooltip.cm-completionInfo": { maxWidth: "min(300px, 50vw)" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--limit)" },
  ".cm-diagnosticAction": { backgroundColor: "var(--accent)", color: "var(--on-accent)", borderRadius: "4px", padding: "2px 8px" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--ink)" },
  ".cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-panel label": { display: "inline-block", fontWeight: "400", margin: "0 6px" },
  ".cm-panel": { font: ".8125rem/1.5 system-ui, sans-serif" },
  ".cm-textfield": { ...RAISED, borderRadius: "4px", width: "auto" },
  ".cm-button": { ...RAISED, backgroundImage: "none", borderRadius: "4px" },
  ".cm-panel.cm-search [name=close]": { color: "var(--ink)", fontSize: "1.1rem" },
});
