import { describe, expect, it } from "vitest";
import { answerIn, ours } from "./signIn";

describe("the way back from a provider", () => {
  it("takes what an answer has, and nothing else", () => {
    const query = new URLSearchParams("code=c&state=s&iss=https%3A%2F%2Fsso&session_state=x&next=%2F%2Fevil");
    expect(answerIn(query)).toEqual({ code: "c", state: "s", iss: "https://sso" });
    expect(answerIn(new URLSearchParams("error=access_denied"))).toEqual({ error: "access_denied", state: "" });
  });

  it("leads to a page of ours", () => {
    expect(ours("/runs/a?b=1")).toBe("/runs/a?b=1");
    for (const elsewhere of [null, "", "https://evil.example", "//evil.example", "/\\evil.example", "javascript:x"]) {
      expect(ours(elsewhere)).toBe("/");
    }
    expect(ours("/sign-in/callback")).toBe("/");
  });
});
