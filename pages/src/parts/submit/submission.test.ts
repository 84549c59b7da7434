import { describe, expect, it } from "vitest";
import { ApiError } from "../../api";
import { match } from "../router";
import { submissionOf, EMPTY, shellCommand, isReady, kindOf, mistake, rents } from "./submission";

describe("a submission", () => {
  it("sends only options that were written, and only those of its kind", () => {
    const words = { budget: " $40 ", deadline: "", latency_p95: "30ms", instances: "c5.*, g5.xlarge", on: "simulated" };
    const sent = submissionOf({ ...EMPTY, job: "name: x", words });
    expect(sent).toEqual({
      kind: "train",
      job: "name: x",
      name: "job.yaml",
      launch: false,
      options: { on: "simulated", budget: "$40", instances: ["c5.*", "g5.xlarge"] },
    });
    expect(submissionOf({ ...EMPTY, kind: "serve", recorded: "bert", words }).options).toEqual({
      on: "simulated",
      budget: "$40",
      latency_p95: "30ms",
    });
  });

  it("has a command that does the same", () => {
    expect(shellCommand({ ...EMPTY, name: "a.yaml", words: { budget: "$40" } })).toEqual([
      ...["train", "a.yaml", "--budget", "$40", "--decide-only"],
    ]);
    expect(shellCommand({ ...EMPTY, kind: "serve", recorded: "bert", knobs: "batch: [1]" })).toEqual([
      ...["serve", "bert", "--knobs", "knobs.yaml"],
    ]);
  });

  it("labels a run of any kind", () => {
    const words = { project: " vision ", tag: "ci, nightly" };
    expect(submissionOf({ ...EMPTY, job: "name: x", words })).toMatchObject({ project: "vision", tags: ["ci", "nightly"], options: {} });
    expect(shellCommand({ ...EMPTY, kind: "serve", recorded: "bert", words })).toEqual([
      ...["serve", "bert", "--project", "vision", "--tag", "ci", "--tag", "nightly"],
    ]);
    const wrong = mistake(new ApiError(422, "tag 'a': expected a word"), EMPTY);
    expect(wrong.about).toBe("tag");
  });

  it("is ready once there is a job file, or a model to serve", () => {
    expect(isReady(EMPTY)).toBe(false);
    expect(isReady({ ...EMPTY, job: "name: x" })).toBe(true);
    expect(isReady({ ...EMPTY, kind: "serve", job: "name: x" })).toBe(false);
    expect(isReady({ ...EMPTY, kind: "serve", recorded: "bert" })).toBe(true);
  });

  it("is of the kind that its blocks say", () => {
    expect(kindOf("mlcd:\n  goal: fastest")).toBe("train");
    expect(kindOf("mlcd:\n  elastic:\n    workers: 1..8")).toBe("scale");
    expect(kindOf("mlcd:\n  functions:\n    tuning: {trials: 64}")).toBe("tune");
  });

  it.each([
    ["budget 'abc': expected dollars, such as $100", "budget", null],
    ["ada has $12.00 left of $50.00; this job may spend $40.00: lower its budget, or ask an admin", "budget", null],
    ["job.yaml:4:3: gaol: unknown key; did you mean goal?", "job", 4],
    ["job.yaml:7: budget: expected dollars", "job", 7],
    ["deadline '5': expected a duration", "deadline", null],
    ["on 'nowhere': unknown place", "on", null],
    ["seed: expected a word or a number, or a list of them", "seed", null],
    ["MLCD does not answer", "", null],
  ])("shows %j where it belongs", (words, about, line) => {
    expect(mistake(new ApiError(422, words), EMPTY)).toEqual({ about, words, line });
  });
});

describe("an address", () => {
  it("fits a pattern, part by part, decoded", () => {
    expect(match("/runs/:run", "/runs/a%20b")).toEqual({ run: "a b" });
    expect(match("/runs/:run", "/runs/a/explore")).toBeNull();
    expect(match("/runs/:run/explore", "/runs/a/explore/")).toEqual({ run: "a" });
    expect(match("/runs/:run", "/runs/%E0%A4%A")).toBeNull();
  });
});

it("real money is spent on clouds and on their functions, and nowhere else", () => {
  expect(["skypilot", "skypilot:aws", "functions:aws"].filter(rents)).toHaveLength(3);
  expect(["", "simulated", "local", "recorded:a", "functions", "functions:simulated"].filter(rents)).toEqual([]);
});
