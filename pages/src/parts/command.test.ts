import { expect, test } from "vitest";
import { commandLine, optionsOf } from "./Command";

const origin = "https://mlcd.example.org";

function line(words: string[], mode: "ui" | "service"): string {
  return commandLine(words, { mode }, origin).join(" ");
}

test("a command names the service where there is one", () => {
  expect(line(["stop", "a-1"], "ui")).toBe("mlcd stop a-1");
  expect(line(["stop", "a-1"], "service")).toBe(`mlcd --server ${origin} stop a-1`);
});

test("a shell reads each word as one", () => {
  expect(line(["train", "it's here.yaml", "--budget", "$5"], "ui")).toBe(
    "mlcd train 'it'\\''s here.yaml' --budget '$5'",
  );
});

test("options are the command line's, and a list is said piece by piece", () => {
  expect(optionsOf({ latency_p95: "30ms", instances: ["c5.*", "g5"] })).toEqual([
    "--latency-p95",
    "30ms",
    "--instances",
    "c5.*",
    "--instances",
    "g5",
  ]);
});
