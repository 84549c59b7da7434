/** The documents of the API, /api/v1: what mlcd/service/web sends. */

export type * from "./types/asking";
export type * from "./types/catalog";
export type * from "./types/run";
export type * from "./types/team";
