import { describe, expect, it } from "vitest";
import { place } from "./place";
import { ITEM, keys, meaning, values, type Schema } from "./schema";

const SCHEMA: Schema = {
  properties: { run: { description: "Commands." }, gone: false, mlcd: { $ref: "#/$defs/Block" } },
  $defs: {
    Block: {
      type: "object",
      description: "What MLCD needs.",
      properties: {
        work: { anyOf: [{ type: ["number", "string"] }, { $ref: "#/$defs/Work" }], description: "How much." },
        goal: { $ref: "#/$defs/Goal", default: "fastest" },
        budget: { anyOf: [{ type: ["number", "string"] }, { type: "null" }], examples: ["$100"] },
        checkpoints: { type: "boolean", default: false },
        elastic: { $ref: "#/$defs/Search", deprecated: true },
        search: { $ref: "#/$defs/Search" },
        precision: { anyOf: [{ $ref: "#/$defs/Goal" }, { type: "object", propertyNames: { $ref: "#/$defs/Goal" } }] },
      },
    },
    Goal: { enum: ["fastest", "cheapest"], type: "string", description: "What is made small." },
    Work: { type: "object", properties: { samples: {} } },
    Search: {
      type: "object",
      description: "How to search.",
      properties: {
        instances: {
          anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }],
          examples: ["g5.xlarge"],
        },
      },
    },
  },
};

describe("a schema", () => {
  it("knows the keys of each depth, and offers none that was given up or is refused", () => {
    expect(keys(SCHEMA, []).map(({ name }) => name)).toEqual(["run", "mlcd"]);
    expect(keys(SCHEMA, ["mlcd"]).map(({ name }) => name)).not.toContain("elastic");
    expect(keys(SCHEMA, ["mlcd", "work"])).toEqual([{ name: "samples", meaning: "", block: false }]);
    expect(keys(SCHEMA, ["mlcd", "nothing"])).toEqual([]);
  });

  it("knows which keys have only keys below them", () => {
    expect(keys(SCHEMA, ["mlcd"]).filter(({ block }) => block).map(({ name }) => name)).toEqual(["search"]);
  });

  it("knows values: of an enum, yes and no, examples, and those of a list", () => {
    expect(values(SCHEMA, ["mlcd", "goal"])).toEqual(["fastest", "cheapest"]);
    expect(values(SCHEMA, ["mlcd", "checkpoints"])).toEqual(["true", "false"]);
    expect(values(SCHEMA, ["mlcd", "budget"])).toEqual(["$100"]);
    expect(values(SCHEMA, ["mlcd", "search", "instances", ITEM])).toEqual(["g5.xlarge"]);
    expect(keys(SCHEMA, ["mlcd", "precision"]).map(({ name }) => name)).toEqual(["fastest", "cheapest"]);
  });

  it("says what a key means, or what it stands for", () => {
    expect(meaning(SCHEMA, ["mlcd", "work"])).toBe("How much.");
    expect(meaning(SCHEMA, ["mlcd", "goal"])).toBe("What is made small.");
    expect(meaning(SCHEMA, ["mlcd", "search", "nothing"])).toBe("");
  });
});

describe("a place in a text", () => {
  const TEXT = "name: x\nrun: |\n  echo a\nmlcd:\n  work: 1M # much\n  search:\n    nodes: 1..8\n";
  it.each([
    ["", "key", [], ""],
    ["na", "key", [], "na"],
    [`${TEXT}  bud`, "key", ["mlcd"], "bud"],
    [`${TEXT}    in`, "key", ["mlcd", "search"], "in"],
    [`${TEXT}  goal: ch`, "value", ["mlcd", "goal"], "ch"],
    [`${TEXT}  goal: `, "value", ["mlcd", "goal"], ""],
    [`${TEXT}  scale: {wor`, "key", ["mlcd", "scale"], "wor"],
    [`${TEXT}  scale: {workers: 1..8, search: fu`, "value", ["mlcd", "scale", "search"], "fu"],
    [`${TEXT}  scale: {workers: 1..8, `, "key", ["mlcd", "scale"], ""],
    [`${TEXT}  scale: {price: {cpu: 1}, ba`, "key", ["mlcd", "scale"], "ba"],
    [`${TEXT}    instances: [g5.xlarge, p`, "value", ["mlcd", "search", "instances", ITEM], "p"],
    [`${TEXT}    instances:\n      - g`, "value", ["mlcd", "search", "instances", ITEM], "g"],
    [`${TEXT}    instances:\n    - a\n    - g`, "value", ["mlcd", "search", "instances", ITEM], "g"],
  ])("after %j is a %s", (before, kind, path, typed) => {
    expect(place(before)).toEqual({ kind, path, typed });
  });

  it("is none in a comment, in a text of several lines, or right behind a colon", () => {
    expect(place(`${TEXT}  goal: x # ch`)).toBeNull();
    expect(place("run: |\n  torch")).toBeNull();
    expect(place(`${TEXT}  goal:`)).toBeNull();
  });
});
