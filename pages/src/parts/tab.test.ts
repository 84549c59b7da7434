import { expect, test } from "vitest";
import type { Status } from "../types";
import { type Tab, tabOf } from "./tab";

function tab(status: Status, driven = false): Tab {
  return tabOf({ run: "a-1", status, driven });
}

test("a tab says how its run stands, and whether somebody drives it", () => {
  expect(tab("searching", true)).toEqual({ title: "● searching: a-1", icon: "-busy" });
  expect(tab("searching")).toEqual({ title: "interrupted: a-1", icon: "" });
  expect(tab("stopped")).toEqual({ title: "stopped: a-1", icon: "" });
  expect(tab("finished")).toEqual({ title: "✓ finished: a-1", icon: "-good" });
  expect(tab("infeasible").icon).toBe("-bad");
});
