/** The path of something in a project. @param query - is left out where undefined */
export function projectPagePath(
  where: string,
  page: string,
  query: Readonly<Record<string, string | number | undefined>> = {},
): string {
  return withQuery(`/p/${where}/${page}`, query);
}

/** A path with a query. @param query - is left out where undefined */
export function withQuery(path: string, query: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString();
  return text === "" ? path : `${path}?${text}`;
}
