import type { AskedReceiver } from "../../types";

export type Kind = AskedReceiver["kind"];
export type Whose = "own" | "all" | "team" | "member";

export interface Chosen {
  kind: Kind;
  whose: Whose;
  of: string;
  address: string;
  name: string;
  chosen: string[];
}

/** What is sent for a new receiver: no event chosen is all of them. */
export function receiverRequest({ kind, whose, of, address, name, chosen }: Chosen): AskedReceiver {
  return {
    kind,
    address: address.trim(),
    name: name.trim(),
    events: chosen.length > 0 ? chosen : null,
    own: whose === "own",
    member: whose === "member" ? of.trim() : null,
    team: whose === "team" ? of.trim() : null,
  };
}
