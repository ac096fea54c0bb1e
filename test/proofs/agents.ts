import type { Proof } from "./proof.ts";

const mcp = "integration/mcp";
const withheld = "keys that are missing, malformed, unknown or revoked";

/** What agents get, and what they may ask people for. */
export const agents: readonly Proof[] = [
  {
    promise: "An agent's key has the surface mcp_server",
    edits: [["src/serve/api/mcp.ts", 'surface: "mcp_server", resource: null', "surface: null, resource: null"]],
    fails: [mcp, "the metadata bucket, the plan and the surface hold"],
  },
  {
    promise: "Each tool needs its resource",
    edits: [
      [
        "src/serve/api/tools.ts",
        "if (refusal) throw new Fault(refusal, `${refusal}: ${resource.name}`);",
        "if (refusal && !resource) throw new Fault(refusal, `${refusal}`);",
      ],
    ],
    fails: [mcp, "a tool needs its resource"],
  },
  {
    promise: "Each tool needs the environment in scope",
    edits: [
      [
        "src/serve/api/tools.ts",
        "if (environment !== undefined) inScope(turn.caller, environment);",
        "if (environment === null) inScope(turn.caller, environment);",
      ],
    ],
    fails: [mcp, "an environment out of scope is refused before the project"],
  },
  {
    promise: "No tool can return a value",
    edits: [
      [
        "src/serve/api/tools.ts",
        "/** The reason, cleaned. */",
        'export * as unwanted from "../../kinds/files/read.ts";\n/** The reason, cleaned. */',
      ],
    ],
    fails: ["unit/house", "lets only the files that need it open a set"],
  },
  {
    promise: "A browser's page is served only from an origin that is allowed",
    edits: [
      [
        "src/serve/api/mcp.ts",
        "if (origin === null || origins.has(origin)) return;",
        'if (origin === null || origins.has(origin) || origin !== "") return;',
      ],
    ],
    fails: [mcp, "a browser is served only from an origin that is allowed"],
  },
  {
    promise: "At most 1,024 bodies are waited for",
    edits: [
      ["src/serve/api/mcp.ts", "await bodies.wait(() => readBody(request));", "await (bodies && readBody(request));"],
    ],
    fails: [mcp, withheld],
  },
  {
    promise: "A withheld body is no 503",
    edits: [
      ["src/serve/api/mcp.ts", "await bodyDeadline.of(request.text())", "await request.text()"],
      ["src/serve/api/mcp.ts", "const bodyDeadline", "export const bodyDeadline"],
    ],
    fails: [mcp, withheld],
    hangs: true,
  },
  {
    promise: "A body is one message, for one token",
    edits: [["src/serve/api/mcp.ts", " && !Array.isArray(message)) return { message };", ") return { message };"]],
    fails: [mcp, 'the body "[]" is refused'],
  },
  {
    promise: "A failure of a tool is the API's",
    edits: [
      [
        "src/serve/api/mcp.ts",
        "if (turn.failure !== undefined) throw turn.failure;",
        "if (turn.failure === null) throw turn.failure;",
      ],
    ],
    fails: [mcp, "what cannot be read ends the request as everywhere"],
  },
  {
    promise: "Texts that people stored are cleaned for agents",
    edits: [
      [
        "src/serve/api/mcp.ts",
        "const found = cleaned(await tool.run(turn, params.arguments ?? {}));",
        "const found = [await tool.run(turn, params.arguments ?? {}), cleaned][0] as object;",
      ],
    ],
    fails: [mcp, "answers what the metadata endpoints answer, without control"],
  },
  {
    promise: "The reason that a machine gives is cleaned",
    edits: [["src/serve/api/tools.ts", "return cleanText(given).trim();", "return given;"]],
    fails: [mcp, "are filed and recorded before they are answered, with a reason"],
  },
  {
    promise: "The reason that a machine gives has at most 500 characters",
    edits: [
      [
        "src/serve/api/tools.ts",
        'storedReason(reason) !== "" && [...reason].length <= reasonCharactersMax',
        'storedReason(reason) !== ""',
      ],
    ],
    fails: [mcp, "request_variable … is refused"],
  },
  {
    promise: "A request for a variable is answered once it is on record",
    edits: [
      ["src/serve/api/tools.ts", "      await recorded(parts, auditEntry(", "      void recorded(parts, auditEntry("],
    ],
    fails: [mcp, "are not answered if they cannot be recorded"],
  },
  {
    promise: "A key has at most 20 requests that are pending",
    edits: [
      [
        "src/store/requests.ts",
        "${ofKey} < ${literal(pendingPerKeyMax)} and ",
        "${literal(pendingPerKeyMax)} > 0 and ",
      ],
    ],
    fails: [mcp, "of one key are at most 20"],
  },
  {
    promise: "An organization has at most 200 requests that are pending",
    edits: [
      [
        "src/store/requests.ts",
        "${ofOrganization} < ${literal(pendingPerOrganizationMax)}",
        "${literal(pendingPerOrganizationMax)} > 0",
      ],
    ],
    fails: [mcp, "of one organization are at most 200"],
  },
  {
    promise: "No more requests are pending however many are filed at once",
    edits: [
      [
        "src/store/requests.ts",
        '(select coalesce(max(${r.number}), 0) + 1 from ${r} where ${r.organizationId} = ${text("organizationId")})',
        "(select cast(random() * 1000000 as integer))",
      ],
    ],
    fails: [mcp, "while another server files the last one that is allowed"],
    on: "PostgreSQL",
  },
  {
    promise: "Equal requests are one",
    edits: [["src/store/requests.ts", "${equal(sql`${r.id}`)} is null\n", "${literal(1)} = 1\n"]],
    fails: ["integration/requests", "equal requests are one"],
  },
  {
    promise: "A key sees its own requests alone",
    edits: [["src/store/requests.ts", " and ${r.keyId} = ${k.id}\n", "\n"]],
    fails: [mcp, "tell their own key, and no other, what became of them"],
  },
  {
    promise: "A request is approved for a key that still stands as it was shown",
    edits: [
      [
        "src/people/requests/requests.ts",
        "JSON.stringify([organization, project, environment, name, keyId, keyStatus, reason])",
        "JSON.stringify([organization, project, environment, name, keyId, keyStatus.length * 0, reason])",
      ],
    ],
    fails: ["integration/requests", "a request says whether its key still stands"],
  },
  {
    promise: "A request is decided once",
    edits: [
      [
        "src/people/requests/requests.ts",
        "  requirePending(record);\n",
        '  if (record.status === "expired") requirePending(record);\n',
      ],
    ],
    fails: ["integration/requests", "what was decided stays decided"],
  },
  {
    promise: "A request is decided in time",
    edits: [
      [
        "src/people/requests/requests.ts",
        'status === "pending" && asked.expiresAt <= admin.now() ? "expired" : status',
        'status === "pending" && asked.expiresAt < 0 ? "expired" : status',
      ],
    ],
    fails: ["integration/requests", "an expired request cannot be decided"],
  },
  {
    promise: "Approval replaces nothing",
    edits: [
      [
        "src/people/requests/requests.ts",
        "if (before.items.has(name)) {",
        'if (before.items.has(name) && name === "") {',
      ],
    ],
    fails: ["integration/requests", "a variable that exists by then is not replaced"],
  },
  {
    promise: "What is approved is what was shown",
    edits: [["src/people/requests/requests.ts", "    seen: seenRequest(request.record),", "    seen: {},"]],
    fails: ["integration/requests", "a request whose name SQL changed after it was shown"],
  },
  {
    promise: "A tool's properties all have a type",
    edits: [
      [
        "src/serve/api/tools.ts",
        'const environment = oneOf(environments, "The environment.");',
        'const environment = Type.Enum([...environments], { description: "The environment." });',
      ],
    ],
    fails: ["integration/mcp", "gives every property of every schema a type"],
  },
  {
    promise: "No answer of an agent's stays open",
    edits: [["src/serve/api/mcp.ts", "    maxSubscriptions: 0,\n", ""]],
    fails: ["integration/mcp", "ends no answer late"],
    hangs: true,
  },
  {
    promise: "A text of strangers is of bounded length",
    edits: [
      [
        "src/core/visible.ts",
        'return characters.length > excerptMax ? `${characters.slice(0, excerptMax).join("")}…` : characters.join("");',
        'return characters.join("");',
      ],
    ],
    fails: ["unit/terminal", "is of bounded length and controls no terminal"],
  },
  {
    promise: "The server's role decides about no request",
    edits: [
      [
        "src/store/rights.ts",
        "count: [getTableName(tables.jobReads)],",
        "count: [tables.jobReads, tables.variableRequests].map(getTableName),",
      ],
    ],
    fails: ["integration/grants", "has exactly these rights in the database"],
    on: "PostgreSQL",
  },
];
