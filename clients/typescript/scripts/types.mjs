// Types from the service's OpenAPI document: node scripts/types.mjs openapi.json > src/schema.ts

import { readFileSync } from "node:fs";

/** Return the text of src/schema.ts. */
export function typesOf(document) {
  const schemas = document.components.schemas;
  const responses = responseSchemas(document);
  const parts = Object.keys(schemas)
    .sort()
    .map((name) => declared(name, schemas[name], responses.has(name)));
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => `  /** ${operation.summary} */\n  ${operation.operationId}: ["${method.toUpperCase()}", "${path}"];`),
  );
  return [
    "// Made from the service's OpenAPI document by `npm run types`; a test fails when it is not current.",
    ...parts,
    `/** Operations by name: method and path. */\nexport interface Operations {\n${operations.join("\n")}\n}\n`,
  ].join("\n\n");
}

/** Return the names of schemas that only occur in responses; there, a field with a default is always present. */
function responseSchemas(document) {
  const requested = new Set();
  const responded = new Set();
  for (const methods of Object.values(document.paths)) {
    for (const operation of Object.values(methods)) {
      reach(operation.requestBody ?? {}, document, requested);
      reach(operation.responses, document, responded);
    }
  }
  return new Set([...responded].filter((name) => !requested.has(name)));
}

function reach(node, document, found) {
  if (node === null || typeof node !== "object") return;
  const name = typeof node.$ref === "string" ? node.$ref.split("/").pop() : undefined;
  if (name !== undefined && !found.has(name)) {
    found.add(name);
    reach(document.components.schemas[name], document, found);
  }
  for (const child of Object.values(node)) reach(child, document, found);
}

function declared(name, schema, inResponses) {
  const needed = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties ?? {}).map(([field, kind]) => {
    const always = needed.has(field) || (inResponses && ("default" in kind || "$ref" in kind));
    const note = noteOf(kind);
    return `${note ? `  /** ${note} */\n` : ""}  ${field}${always ? "" : "?"}: ${typeOf(kind)};`;
  });
  const about = schema.description ? `/** ${schema.description} */\n` : "";
  return `${about}export interface ${name} {\n${fields.join("\n")}\n}`;
}

function noteOf(kind) {
  const notes = [kind.description, "default" in kind ? `Default: ${JSON.stringify(kind.default)}` : undefined];
  return notes.filter(Boolean).join(" ");
}

function typeOf(kind) {
  if (kind.$ref) return kind.$ref.split("/").pop();
  if (kind.enum) return kind.enum.map((each) => JSON.stringify(each)).join(" | ");
  if (kind.anyOf) return kind.anyOf.map(typeOf).join(" | ");
  if (kind.prefixItems) return `[${kind.prefixItems.map(typeOf).join(", ")}]`;
  switch (kind.type) {
    case "array": {
      const inner = kind.items ? typeOf(kind.items) : "unknown";
      return inner.includes("|") ? `(${inner})[]` : `${inner}[]`;
    }
    case "object":
      return `Record<string, ${typeof kind.additionalProperties === "object" ? typeOf(kind.additionalProperties) : "unknown"}>`;
    case "integer":
    case "number":
      return "number";
    case "string":
    case "boolean":
    case "null":
      return kind.type;
    default:
      return "unknown";
  }
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  process.stdout.write(typesOf(JSON.parse(readFileSync(process.argv[2] ?? 0, "utf8"))));
}
