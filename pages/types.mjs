// Writes src/types/api.ts: the types of all that the API sends and takes, from its OpenAPI document on stdin.
// `npm run types` does so, and a test compares.

import { writeFileSync } from "node:fs";
import { json } from "node:stream/consumers";
import openapiTS, { astToString } from "openapi-typescript";

const document = await json(process.stdin);
const made = await openapiTS(
  { ...document, paths: {} }, // the pages write their addresses themselves
  { rootTypes: true, rootTypesNoSchemaPrefix: true },
);
writeFileSync(process.argv[2] ?? "src/types/api.ts", `// Made by npm run types: do not edit.\n\n${astToString(made)}`);
