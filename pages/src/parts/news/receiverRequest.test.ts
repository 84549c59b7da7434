import { expect, test } from "vitest";
import { receiverRequest, type Chosen } from "./receiverRequest";

const MINE: Chosen = { kind: "mail", whose: "own", of: "", address: " ada@example.org ", name: "", chosen: [] };

test("a member's own mail of all events", () => {
  expect(receiverRequest(MINE)).toEqual({
    kind: "mail",
    address: "ada@example.org",
    name: "",
    events: null,
    own: true,
    member: null,
    team: null,
  });
});

test("a team's webhook of some events, without what was typed for another choice", () => {
  const chosen: Chosen = { ...MINE, kind: "slack", whose: "team", of: "vision ", chosen: ["failed"] };
  expect(receiverRequest(chosen)).toMatchObject({ own: false, team: "vision", member: null, events: ["failed"] });
  expect(receiverRequest({ ...chosen, whose: "all" })).toMatchObject({ own: false, team: null, member: null });
});
