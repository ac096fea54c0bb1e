import { Type } from "typebox";
import { itemsMax } from "../../core/names.ts";
import { parameters, parseQuery } from "../../serve/gates/query.ts";

export const filesQuery = {
  project: parameters.project,
  environment: parameters.environment,
  metadataOnly: parameters.metadataOnlyOrOne,
  path: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      maxItems: itemsMax,
      description: `The exact path of a file. May be repeated, up to ${itemsMax} times, as long as the address and the headers together stay below 16 KiB: about 250 paths of 50 characters. Without it, all files are read.`,
    }),
  ),
};

export function parseFiles(raw: string) {
  const { project, environment, metadataOnly, path } = parseQuery(filesQuery, raw);
  const paths = path && [...new Set(path)].sort();
  return { project, environment, metadataOnly: metadataOnly === "true" || metadataOnly === "1", paths };
}
