import { describe, expect, test } from "vitest";
import { plain, spansOf, split } from "./ansi";

describe("a line with colours", () => {
  test("is text and names of classes", () => {
    expect(spansOf("a\x1b[1;31mred\x1b[0m<b>\x1b[92m\x1b[44mx\x1b[39;49my")).toEqual([
      { text: "a", look: "" },
      { text: "red", look: "bold ink1" },
      { text: "<b>", look: "" },
      { text: "x", look: "ink2 paper4" },
      { text: "y", look: "" },
    ]);
  });

  test("has one of eight colours, whatever a job asks for", () => {
    const inks = ["38;5;196", "38;5;33", "38;2;255;200;0", "38;5;240", "38:2:0:0:250", "38;5;9999", "38", "38;7"];
    expect(inks.map((code) => spansOf(`\x1b[${code}mx`)[0]!.look)).toEqual([
      "ink1", "ink4", "ink3", "ink0", "ink4", "ink7", "", "",
    ]);
    expect(spansOf("\x1b[38;5;196;1mx")[0]!.look).toBe("bold ink1");
  });

  test("of which the end is missing leaves nothing behind", () => {
    expect(plain("a\x1b[31mb\x1b[3")).toBe("ab");
    expect(spansOf("ab\x1b[3").map((span) => span.text)).toEqual(["ab"]);
    expect(spansOf("\x1b[999999999999999999mx\x1b[;;;my")).toHaveLength(2);
  });

  test("is marked where it holds what is looked for", () => {
    expect(split("Loss 1, loss 2", "loss")).toEqual(["", "Loss", " 1, ", "loss", " 2"]);
    expect(split("none", "")).toEqual(["none"]);
  });
});
