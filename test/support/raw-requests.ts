/*
 * Requests as they are on the wire, for two servers that must answer them alike. KEY stands for a key that is good. What
 * HTTP itself refuses is not here, nor methods that only some runtimes know: there each runtime has its own answer.
 */

const root = "/api/v1";
const auth = "Authorization: Bearer KEY";
const web = `${root}/projects/web/variables?environment=production`;

/** Spellings of addresses: encoded letters, segments of dots, absolute addresses, characters that URLs do not have. */
const targets = [
  ...[
    ...["/projects/%77eb", "/%6Frganization", "/projects/w%65b/variables?environment=production", "/projects/./web"],
    ...["/projects/x/../web", "/projects/web/.", "/projects/web/..", "/%2e/organization", "/%2E%2e/v1/organization"],
    ...["/projects/web%2Fvariables", "/projects/web%252F", "/projects/%zz", "/projects/%", "/projects/%ff"],
    ...["/projects/%00", "/projects/web%00", "/projects/%E2%80%AE", "/projects/Web", "//organization"],
    ...["/organization/", "/organization#x", "/organization;x=1", "/organization%20", "/organization%2F"],
    ...["/organization?", "/organization??", "/projects/%/variables?environment=production", '/projects/w"b'],
    ...["/projects/w<b", "/projects/w^b", "/projects/w|b", "/projects/w{b}", "/projects/w`b", "/projects/w'b"],
    ...["/projects/%77%65%62/accounts", "/projects/", "/projects//", "/projects//variables", "/projects/web/", "", "/"],
    ...[
      "/projects/web?#",
      "/projects/web#?x=1",
      "/projects/web%20",
      "/projects/web+",
      "/projects/:slug",
      "/projects/*",
    ],
    ...["/projects/%2e%2e/projects", "/nothing", "/projects/none", "/projects/none/accounts", "/projects?a"],
  ].map((path) => root + path),
  ...["/api/../api/v1/organization", "/../api/v1/organization", "/API/v1/organization", "//api/v1/organization"],
  ...[
    "///api/v1/organization",
    "http://localhost/api/v1/organization",
    "https://elsewhere.example/api/v1/projects/web",
  ],
  ...["HTTP://LOCALHOST/api/v1/organization", "http://localhost", "http://user:pw@localhost/api/v1/organization"],
  ...["/", "/metrics", "/livez", "/readyz", "/mcp", "/favicon.ico", "/api", "/api/v1x/organization"],
];

const queries = [
  ...["environment=sta%67ing", "%65nvironment=staging", "environment=staging&", "&environment=staging"],
  ...["environment=staging&&prefix=A", "environment=staging&environment=staging", "environment=staging&keys=A%2CB"],
  ...["environment=staging&keys=A+B", "environment=staging&keys=A%20B", "=", "=&=", "environment", "environment="],
  ...["environment==staging", "environment=staging;prefix=A", "ENVIRONMENT=staging", "environment=STAGING"],
  ...["'", '"', "<", "%C3%A9", "%", "%zz", "%f", "A#B", "A?B", "/../", "\\", "|^`{}", "%00", "A&path=b"].map(
    (prefix) => `environment=staging&prefix=${prefix}`,
  ),
  ...["environment=staging&access_token=KEY", "access_token=KEY", "metadata_only=true", "metadata_only=TRUE"],
  ...["metadata_only=1", "metadata_only=tr%75e", "metadata_only=true&metadata_only=true"],
  ...["environment=staging&format=env&metadata_only=true", "environment=staging&__proto__=1", "constructor=1"],
];

const methods = [
  ...["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "QUERY", "M-SEARCH", "LINK"],
  ...["PURGE", "SUBSCRIBE", "MKCOL", "REPORT", "LOCK", "SEARCH"],
];

/** The Authorization fields of each request. */
const authorizations: readonly (readonly string[])[] = [
  [],
  ["Bearer KEY", "Bearer KEY"],
  ["Bearer KEY", "Bearer x"],
  ["Bearer x", "Bearer KEY"],
  ["Bearer KEY", ""],
  ["", "Bearer KEY"],
  ["Bearer KEY", "Bearer KEY", "Bearer KEY"],
  ...["", "KEY", "bearer KEY", "BEARER KEY", "Bearer  KEY", "Bearer\tKEY", "Bearer KEY ", " Bearer KEY", "BearerKEY"],
  ...["Token KEY", "Basic KEY", "Bearer KEY,", "Bearer", "Bearer KEY KEY", 'Bearer "KEY"', "Bearer KEYx", "Bearer x"],
  ...["Bearer a.b.c", "Bearer kh_\xe9", "Bearer,KEY", "Bearer: KEY", "bEaReR   KEY", "KEY KEY", "Bearer KEY\t", "kh_"],
].map((one) => (typeof one === "string" ? [one] : one));

const tag = `"${"o".repeat(43)}"`;
const fields = [
  ...["mine-1", "", "x".repeat(128), "x".repeat(129), "a b", "a\nx-request-id: b", "\xe9", '"x"', "a/b"].map(
    (id) => `x-request-id: ${id}`,
  ),
  ...["*", '"other"', "junk", tag, `W/${tag}`, '"a", *', "*\nIf-None-Match: *", `"a"\nIf-None-Match: ${tag}`].map(
    (tags) => `If-None-Match: ${tags}`,
  ),
  ...["If-None-Match:", "if-none-match: *, *", "X-REQUEST-ID: mine", "Content-Length: 0", "Content-Length: 00"],
  ...["Content-Length: 1\n\nx", "Content-Length: 5\n\nabcde", "Transfer-Encoding: chunked\n\n0\n\n"],
  ...["Transfer-Encoding: chunked\n\n1\nx\n0\n\n", "Expect: 100-continue", "Expect: something", "Upgrade: h2c"],
  ...["Accept-Encoding: gzip, br", "Cookie: a=b", "Range: bytes=0-1", "Origin: https://app.example"],
  ...["If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT", "Accept: text/html", "Accept: application/xml;q=0"],
  ...["User-Agent:", "Proxy-Authorization: Bearer KEY", "X-Forwarded-For: 1.2.3.4", "X-HTTP-Method-Override: POST"],
  ...["Forwarded: for=1.2.3.4", "Content-Type: text/plain", "TE: trailers", "If-Match: *", "If-Range: x"],
  ...["Access-Control-Request-Method: GET", `x: ${"x".repeat(8000)}`, `x: ${"x".repeat(17_000)}`],
];

const hosts = [
  ...["", "a b", "a/b", "[::1]", "[::1]:80", "localhost:99999", "localhost:80", "a?b", "a#b", "user@a", "%41", "-"],
  ...["a,b", ".", "*", "[", "1.2.3.4", "1.2.3.999", "A", "\xe9", "a\nHost: b", "a\nHost: a"],
];

/** @param paths - more addresses below the API's root */
export function rawRequests(paths: readonly string[]): string[] {
  const get = (target: string, more = "") => `GET ${target} HTTP/1.1\nHost: localhost\n${auth}${more}`;
  return [
    ...[...targets, ...queries.map((query) => `${root}/projects/web/variables?${query}`)].map((one) => get(one)),
    ...paths.map((path) => get(root + path)),
    ...["/organization", "/nowhere"].flatMap((path) =>
      methods.flatMap((method) => [
        `${method} ${root}${path} HTTP/1.1\nHost: localhost\n${auth}`,
        ...(path === "/nowhere" || method === "HEAD"
          ? []
          : [`${method} ${root}${path} HTTP/1.1\nHost: localhost\nContent-Length: 1\n\nx`]),
      ]),
    ),
    ...authorizations.map((all) => {
      const own = all.map((one) => `\nAuthorization: ${one}`).join("");
      return `GET ${root}/organization HTTP/1.1\nHost: localhost${own}`;
    }),
    ...fields.map((own) => get(web, `\n${own}`)),
    get(`${root}/nowhere`, "\nContent-Length: 1\n\nx"),
    ...hosts.map((own) => `GET ${root}/organization HTTP/1.1\n${auth}\nHost: ${own}`),
    `GET ${root}/organization HTTP/1.0\nHost: localhost\n${auth}`,
  ];
}

/** The bytes of a request, which asks for the end of its connection, as Latin-1. */
export function bytesOf(request: string, key: string): string {
  const [head = "", ...body] = request.replaceAll("KEY", key).split("\n\n");
  return [`${head}\nConnection: close`, ...(body.length > 0 ? body : [""])].join("\n\n").replaceAll("\n", "\r\n");
}
