import { expect, test } from "vitest";
import { changeOf } from "./labelChange";

const RUN = { project: "vision", tags: ["a", "b"], note: "good", archived: false };
const FORM = { project: "vision", tags: "a b", note: "good", archived: false };

test("what stays is not sent", () => {
  expect(changeOf(RUN, FORM)).toEqual({});
  expect(changeOf({ ...RUN, project: null }, { ...FORM, project: " " })).toEqual({});
});

test("tags come and go one by one", () => {
  expect(changeOf(RUN, { ...FORM, tags: " b, c  b" })).toEqual({ add_tags: ["c"], remove_tags: ["a"] });
});

test("what is emptied is taken away", () => {
  expect(changeOf(RUN, { project: "", tags: "", note: "", archived: true })).toEqual({
    project: "",
    remove_tags: ["a", "b"],
    note: "",
    archived: true,
  });
});
