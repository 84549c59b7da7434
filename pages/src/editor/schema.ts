/** What a JSON Schema says of a place in a document: the keys that may stand there, their values, their meaning. */

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  anyOf?: Schema[];
  properties?: Record<string, Schema | false>;
  propertyNames?: Schema;
  items?: Schema;
  type?: string | string[];
  enum?: unknown[];
  examples?: unknown[];
  default?: unknown;
  description?: string;
  deprecated?: boolean;
}

/** Of a list, each of its items. */
export const ITEM = "[]";
export type Path = readonly string[];

export interface Key {
  name: string;
  meaning: string;
  /** It has keys below it, and can be nothing else. */
  block: boolean;
}

/** A schema and all that it stands for: what it refers to, and each of its alternatives. */
function alternatives(root: Schema, schema: Schema | false | undefined): Schema[] {
  if (!schema) return [];
  const referred = schema.$ref ? root.$defs?.[schema.$ref.replace(/^.*\//, "")] : undefined;
  return [schema, ...[referred, ...(schema.anyOf ?? [])].flatMap((each) => alternatives(root, each))];
}

function at(root: Schema, path: Path): Schema[] {
  let here = alternatives(root, root);
  for (const key of path) {
    here = here.flatMap((each) => alternatives(root, key === ITEM ? each.items : each.properties?.[key]));
  }
  return here;
}

const mayBe = (schema: Schema, type: string): boolean => [schema.type].flat().includes(type);

/** The keys that may stand below this path; names that were given up are not offered. */
export function keys(root: Schema, path: Path): Key[] {
  const found = new Map<string, Key>();
  for (const each of at(root, path)) {
    for (const [name, key] of Object.entries(each.properties ?? {})) {
      if (key === false || key.deprecated) continue;
      const kinds = alternatives(root, key).filter(({ type }) => type !== undefined && type !== "null");
      const block = kinds.length > 0 && kinds.every(({ properties }) => properties !== undefined);
      found.set(name, { name, meaning: meaning(root, [...path, name]), block });
    }
    for (const names of alternatives(root, each.propertyNames)) {
      for (const name of names.enum ?? []) found.set(String(name), { name: String(name), meaning: "", block: false });
    }
  }
  return [...found.values()];
}

/** What may be written as the value at this path, as far as the schema names it. */
export function values(root: Schema, path: Path): string[] {
  const here = at(root, path);
  const around = path.at(-1) === ITEM ? at(root, path.slice(0, -1)) : [];
  const plain = [
    ...here.flatMap((each) => [...(each.enum ?? []), ...(mayBe(each, "boolean") ? [true, false] : [])]),
    ...[...here, ...around].flatMap(({ examples }) => examples ?? []),
    ...here.flatMap((each) => (each.default === undefined ? [] : [each.default])),
  ];
  return [...new Set(plain.filter((each) => typeof each !== "object" && each !== "").map(String))];
}

/** What the key at this path means; '' where nobody says. */
export function meaning(root: Schema, path: Path): string {
  return at(root, path).find(({ description }) => description)?.description ?? "";
}
