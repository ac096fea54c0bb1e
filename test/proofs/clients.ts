import type { Proof } from "./proof.ts";

const cloudSources = "unit/token-sources";
const giver = "src/client/token-giver.ts";
const outgoing = "blackbox/outgoing";
const wire = "src/client/wire.ts";
const lies = "unit/lies";
const npm = "src/client/npm/client.ts";
const client = "unit/keyhole-client";
const follow = "src/client/npm/follow.ts";
const followTest = "unit/follow";
const request = "src/core/json-request.ts";
const python = "docs/clients/keyhole.py";
const copies = "blackbox/clients";
const runProcess = "blackbox/run-process";

/** What clients take from servers, and give to commands. */
export const clients: readonly Proof[] = [
  {
    promise: "The npm client follows no redirect",
    edits: [[request, '      redirect: "manual",\n', ""]],
    fails: [lies, "the npm package refuses a redirect away, and does not ask again"],
  },
  {
    promise: "The npm client sends no key in the clear over a network",
    edits: [
      [
        wire,
        'if (url.protocol === "http:" && !isLoopback(url.hostname) && !mayBePlain(url.hostname)) {',
        'if (url.protocol === "http:" && !isLoopback("localhost") && !mayBePlain(url.hostname)) {',
      ],
    ],
    fails: [client, "for http://keyhole.internal"],
  },
  {
    promise: "A name that begins like this machine's is not this machine",
    edits: [[request, "{1,4})\\]?)$/i", "{1,4})\\]?)/i"]],
    fails: [client, "for http://127.0.0.1.keyhole.test"],
  },
  {
    promise: "No key that a proxy quotes is shown",
    edits: [
      [
        wire,
        'return text.replaceAll(sent, "[the key]").replace(/kh_[0-9A-Za-z]{8,}/g, "[a key]");',
        'return sent === "" ? sent : text;',
      ],
    ],
    fails: [lies, "tells nobody the key that a proxy quotes in a refusal's sentence"],
  },
  {
    promise: "An answer has the described form",
    edits: [
      [
        wire,
        'if (!is(body.json)) return untrusted("it does not have the members that the API describes");',
        "void is;",
      ],
    ],
    fails: [lies, "refuses null for an answer"],
  },
  {
    promise: "An answer is about what was asked",
    edits: [[wire, "  if (clause !== undefined) return untrusted(clause);\n", ""]],
    fails: [lies, "refuses another environment"],
  },
  {
    promise: "At most 16 MiB of an answer are read",
    edits: [[request, "    if (length > bytesMax) return undefined;\n", ""]],
    fails: [lies, "the npm package does not read an endless body for long"],
    hangs: true,
  },
  {
    promise: "A request ends in time",
    edits: [[request, "      signal,\n      // For Bun", "      // For Bun"]],
    fails: [client, "to answer in time ends the request, its body included"],
    hangs: true,
  },
  {
    promise: "Nothing is repeated before Retry-After",
    edits: [[wire, "return Math.max(leastMs, Math.min(pauseMs, leftMs));", "return 1;"]],
    fails: ["unit/client", "is never shorter than Retry-After"],
  },
  {
    promise: "Nothing is repeated for longer than waitMs",
    edits: [[wire, "    if (pauseMs > leftMs) return outcome;\n", ""]],
    fails: ["unit/client", "longer than --wait allows does not start"],
  },
  {
    promise: "A watch gives no value that the server refused it",
    edits: [
      [
        follow,
        "return error instanceof KeyholeError && refusals.includes(error.code);",
        "return error instanceof KeyholeError && refusals.length === 0;",
      ],
    ],
    fails: [followTest, "forgets the values once the key is revoked"],
  },
  {
    promise: "A watch gives no value that is older than its bound",
    edits: [
      [
        follow,
        "if (held !== undefined && ageMs() <= staleMsMax) return held.values;",
        "if (held !== undefined) return held.values;",
      ],
    ],
    fails: [followTest, "goes on with the last values"],
  },
  {
    promise: "A watch asks nobody before Retry-After",
    edits: [
      [
        "src/client/looks.ts",
        "Math.max(doubled, Math.min(retryAfter * 1000, retryAfterMsMax))",
        "Math.max(doubled, Math.min(retryAfter * 0, retryAfterMsMax))",
      ],
    ],
    fails: [followTest, "waits as long as a limit says"],
  },
  {
    promise: "A listener that throws ends no program",
    edits: [[follow, "(async () => listener(values))().catch(() => {});", "listener(values);"]],
    fails: [followTest, "a listener that throws, now or later"],
    hangs: true,
  },
  {
    promise: "A token function that never settles holds nobody for ever",
    edits: [
      [
        npm,
        "return Promise.race([(async () => token())(), late]).finally(() => over.abort());",
        "void late.catch(() => {});\n  return (async () => token())().finally(() => over.abort());",
      ],
    ],
    fails: [client, "of a token function that never settles"],
    hangs: true,
  },
  {
    promise: "No path is sent for a project",
    edits: [[npm, "if (/^[a-z0-9][a-z0-9-]{0,63}$/.test(text)) return text;", 'if (text !== "") return text;']],
    fails: [client, "is not sent with a project that is a path"],
  },
  {
    promise: "An empty list of paths is not sent for all files",
    edits: [[npm, "if (paths?.length === 0) throw", "if (paths?.length === -1) throw"]],
    fails: [client, "no paths, which would be all"],
  },
  {
    promise: "No process of Keyhole is left beside the command",
    edits: [
      [
        "src/cli/run.ts",
        "launch(first, (command) => replaceBy(command, context.inherited));",
        "void [launch, replaceBy];",
      ],
    ],
    fails: [runProcess, "with its process id, and no process of Keyhole is left"],
  },
  {
    promise: "The environment arrives byte for byte",
    edits: [
      [
        "src/core/settings/inherited.ts",
        '    return readFileSync("/proc/self/environ", "latin1").split("\\0").slice(0, -1);',
        '    if (readFileSync) throw new Error("not read");\n    return [];',
      ],
      [
        "src/core/settings/inherited.ts",
        "      if (mayBeChanged(name, value)) throw wouldChange(name);\n      return bytesOf",
        "      return bytesOf",
      ],
    ],
    fails: [runProcess, "with --preserve-env in place of a fetched one"],
  },
  {
    promise: "Open descriptors arrive at the command",
    edits: [["src/cli/replace.ts", "    libc()?.fcntl(fd, setDescriptorFlags, 0n);\n", ""]],
    fails: [runProcess, "reach the command, and no other does"],
  },
  {
    promise: "Descriptors arrive with their flags",
    edits: [
      [
        "src/cli/replace.ts",
        "    libc()?.fcntl(fd, setStatusFlags, BigInt(flags));\n",
        "    void [setStatusFlags, flags];\n",
      ],
    ],
    fails: [runProcess, "keep their flags"],
  },
  {
    promise: "No signal is ignored by the command",
    edits: [
      [
        "src/cli/replace.ts",
        "for (const signal of ignoredSignals()) system.signal(signal, defaultAction);",
        "void [ignoredSignals, defaultAction];",
      ],
    ],
    fails: [runProcess, "are neither blocked nor ignored"],
  },
  {
    promise: "Process 1 leaves no zombie",
    edits: [
      [
        "src/cli/run.ts",
        "const reap = process.pid === 1 ? reapOrphans : undefined;",
        "const reap = process.pid === 1 && reapOrphans.length > 9 ? reapOrphans : undefined;",
      ],
    ],
    fails: [runProcess, "run --watch leaves no zombie of a process whose parent ended"],
  },
  {
    promise: "The reader for Python takes no endless answer",
    edits: [
      [
        python,
        "            if len(body) > ANSWER_BYTES_MAX:\n",
        "            if len(body) > ANSWER_BYTES_MAX * 10**9:\n",
      ],
    ],
    fails: [copies, "no end"],
    hangs: true,
  },
  {
    promise: "The reader for Python takes no answer that is cut off",
    edits: [[python, "        if response.length:\n", "        if response.length and not body:\n"]],
    fails: [copies, "an answer that is cut off"],
  },
  {
    promise: "Only the key's own signature of SHA256SUMS counts",
    edits: [
      [
        "src/cli/minisign.ts",
        "return isWhole && isSigned(key, hash, ofContent) ? comment : undefined;",
        "return isWhole && hash ? comment : undefined;",
      ],
    ],
    fails: ["unit/minisign", "is refused for other content, by another key, and in the older form"],
  },
  {
    promise: "A runner's refusal ends the job",
    edits: [[giver, "const passes = status === 429 || status >= 500 ||", "const passes = status >= 300 ||"]],
    fails: ["unit/runner-token", "what a runner says for good is final"],
  },
  {
    promise: "A runner's failure that may pass does not end the job",
    edits: [[giver, "...(passes && { isTokenAwaited: true, retryAfter })", "...(passes && { retryAfter })"]],
    fails: ["unit/runner-token", "is asked again within --wait"],
  },
  {
    promise: "A token is asked for again near its end",
    edits: [[giver, "Math.min(tokenUseMs, leftMsOf(text) / 2)", "tokenUseMs + 0 * leftMsOf(text)"]],
    fails: [cloudSources, "is asked for again near its end"],
  },
  {
    promise: "The metadata of a cloud is asked for on link-local addresses alone",
    edits: [[giver, "(isLinkLocal || isLoopback(hostname))", "(isLinkLocal || hostname !== '')"]],
    fails: ["unit/client-settings", "Google's metadata at 10.0.0.1"],
  },
  {
    promise: "Credentials of a container come from a link-local address",
    edits: [["src/client/aws-token.ts", "if (url === null || !isMetadata(url)) {", "if (url === null) {"]],
    fails: [cloudSources, "are asked for on no other host"],
  },
  {
    promise: "A signature of AWS covers the session and the body",
    edits: [["src/client/aws-token.ts", 'names.join(";"), sha256(body)]', 'names.join(";"), sha256("")]']],
    fails: [cloudSources, "signs as AWS has published"],
  },
  {
    promise: "What a program printed for a token is a token",
    edits: [["src/client/command-token.ts", "if (!isToken(token)) throw", "if (token === undefined) throw"]],
    fails: [cloudSources, "a program that prints something else"],
  },
  {
    promise: "What Google's metadata server gives for a token is a token",
    edits: [["src/client/cloud-token.ts", "(isToken(text.trim()) ? text.trim() : undefined)", "text.trim()"]],
    fails: [cloudSources, "of gcp says so in a sentence: garbage"],
  },
  {
    promise: "A cloud's answer is read up to 64 KiB",
    edits: [[giver, "bytesMax: 64 * 1024,", "bytesMax: 2 ** 40,"]],
    fails: [cloudSources, "of gcp says so in a sentence: 10 MiB"],
    hangs: true,
  },
  {
    promise: "Of a refusal of AWS only its code is shown",
    edits: [["src/client/aws-token.ts", "<Code>([A-Za-z]{1,60})<", "<Code>([^<]*)<"]],
    fails: [cloudSources, "of AWS STS is quoted by its code alone: x y"],
  },
  {
    promise: "A signed request to AWS is for a region, and goes to no other host",
    edits: [["src/client/aws-token.ts", "if (!/^[a-z0-9-]{1,40}$/.test(region))", 'if (region === "")']],
    fails: [cloudSources, "is not sent for a region that is none"],
  },
  {
    promise: "AWS is asked over TLS",
    edits: [
      [
        "src/client/aws-token.ts",
        'if (env["AWS_ENDPOINT_URL_STS"] && !mayAsk(env["AWS_ENDPOINT_URL_STS"])) {',
        'if (env["AWS_ENDPOINT_URL_STS"] && !mayAsk("https://x")) {',
      ],
    ],
    fails: ["unit/client-settings", "AWS STS in the clear"],
    hangs: true,
  },
  {
    promise: "A program for tokens gets none of Keyhole's settings",
    edits: [
      [
        "src/client/command-token.ts",
        "const own = withoutSettings(env);",
        "const own = { ...withoutSettings({}), ...env };",
      ],
    ],
    fails: [cloudSources, "with its arguments as they are and without Keyhole's settings"],
  },
  {
    promise: "A program that fails has printed no token",
    edits: [["src/client/command-token.ts", "if (code !== 0) throw", "if (code === 127) throw"]],
    fails: [cloudSources, "a program that fails gives no token"],
  },
  {
    promise: "What a program for tokens started ends with it",
    edits: [["src/client/command-token.ts", "process.kill(-child.pid,", "process.kill(child.pid,"]],
    fails: [cloudSources, "ends, and all that it started"],
    hangs: true,
  },
  {
    promise: "A secret on a file system without modes is warned of",
    edits: [["src/core/modes.ts", "if (first === undefined) return;", "if (first === undefined || say) return;"]],
    fails: ["integration/no-modes", "is named with the mode when"],
  },
  {
    promise: "A byte order mark is no part of a secret in a file",
    edits: [["src/core/settings/secret-file.ts", '.replace(/^\\uFEFF|\\r?\\n$/g, "")', '.replace(/\\r?\\n$/g, "")']],
    fails: ["unit/configuration", "is read without its last line end and a byte order mark"],
  },
  {
    promise: "Nothing in a value is a template to Terraform",
    edits: [["src/core/formats/lines.ts", '.replace(/([$%])\\{/g, "$1$1{")', ""]],
    fails: ["unit/render", "is written as"],
  },
  {
    promise: "A value that Terraform would change is refused",
    edits: [["src/core/formats/lines.ts", 'return value.normalize("NFC") === value && ', "return "]],
    fails: ["unit/render", "names that Terraform reserves, and text that it normalizes, are refused by name"],
  },
  {
    promise: "A value that `--mask` names is masked however short it is",
    edits: [
      [
        "src/core/formats/github.ts",
        "const isForced = always.includes(name);",
        "const isForced = always.includes(name) && value.length > 99;",
      ],
    ],
    fails: ["unit/render-github", "do not cover short values and common words"],
  },
  {
    promise: "Commands ask only named hosts without TLS",
    edits: [
      [
        "src/cli/machine.ts",
        "(hostname) => allowedHosts.includes(hostname), way)",
        "(hostname) => allowedHosts.some((one) => hostname.endsWith(one)), way)",
      ],
    ],
    fails: ["unit/client-settings", "are allowed"],
  },
  {
    promise: "An import takes no text of another tool for a value",
    edits: [["src/kinds/variables/foreign.ts", "return found?.[1];", "return found && undefined;"]],
    fails: ["unit/foreign", "is refused by line and name, in every format"],
  },
  {
    promise: "A scrape says what `/readyz` says",
    edits: [["src/serve/process/metrics.ts", ".set(ready ? 1 : 0);", ".set(ready ? 1 : 1);"]],
    fails: ["integration/ops", "readiness names what failed"],
  },
  {
    promise: "A person is told no message of a database that fails",
    edits: [
      [
        "src/people/desk/failure.ts",
        "message: (isPerson ? known.forPersons : undefined) ?? known.message };",
        "message: known.message };",
      ],
    ],
    fails: ["unit/failure", "somebody who is no operator is told what happened and whom to ask"],
  },
  {
    promise: "The reader for Python shows no key that an answer quotes as a code",
    edits: [
      [
        python,
        'if not isinstance(code, str) or not re.fullmatch(r"[a-z_]{1,40}", code):',
        "if not isinstance(code, str):",
      ],
    ],
    fails: [copies, "the key, where a code is"],
  },
  {
    promise: "A job that sets it for its own programs gets its values",
    edits: [["action.yml", '            unset "$name"\n', ""]],
    fails: ["blackbox/action", "give the command its values, whatever the job sets for Bun programs"],
  },
  {
    promise: "The action leaves a command's values to nobody else in the job",
    edits: [
      [
        "action.yml",
        '        exec keyhole run "${options[@]}" -- "${command[@]}"',
        '        keyhole pull --format github --wait 60s\n        exec keyhole run "${options[@]}" -- "${command[@]}"',
      ],
    ],
    fails: [
      "blackbox/action",
      "give the command of run the variables and the files, and nothing else in the job anything",
    ],
  },
  {
    promise: "The action leaves a key in no process beside the command",
    edits: [["action.yml", "        exec keyhole run", "        keyhole run"]],
    fails: [
      "blackbox/thief",
      "leaves a stored key in the runner's memory, where it goes on to work, and in no process of the command",
    ],
  },
  {
    promise: "The action leaves the secret files no longer than the command runs",
    edits: [["action.yml", 'trap "rm -rf \\"\\$folder\\"" EXIT; ', ""]],
    fails: [
      "blackbox/action",
      "give the command of run the variables and the files, and nothing else in the job anything",
    ],
  },
  {
    promise: "An input that the action does not have is named",
    edits: [["action.yml", '        if [ -n "$unknown" ]; then', '        if [ -n "" ]; then']],
    fails: ["blackbox/action", "name the inputs that the action does not have, and fetch nothing"],
  },
  {
    promise: "The action runs only the archive that its commit pins",
    edits: [
      [
        "action.yml",
        'if ! { sha256sum --check <<< "$line" || shasum --algorithm 256 --check <<< "$line"; } > /dev/null 2>&1; then',
        "if false; then",
      ],
    ],
    fails: ["blackbox/action", "refuse an archive that is another one, and run nothing of it"],
  },
  {
    promise: "The reader for Python sends no key in the clear over a network",
    edits: [
      [
        "docs/clients/keyhole.py",
        'if url.scheme == "http" and not _is_loopback(url.hostname):',
        'if url.scheme == "http" and not _is_loopback:',
      ],
    ],
    fails: ["blackbox/clients", "nothing is sent with"],
  },
  {
    promise: "A quiet installation is paged",
    edits: [
      [
        "docs/prometheus/alerts.yml",
        '(increase(keyhole_requests_total{code="unavailable"}[15m])) > 1\n',
        '(increase(keyhole_requests_total{code="unavailable"}[15m])) > 90\n',
      ],
    ],
    fails: ["blackbox/alerts", "a quiet server whose one job, every five minutes, is refused"],
  },
  {
    promise: "Proxies say HSTS",
    edits: [["docs/deploy/Caddyfile", "max-age=31536000", "max-age=3"]],
    fails: ["blackbox/tls", "every answer has Keyhole's headers and HSTS, and is not compressed"],
  },
  {
    promise: "The npm package prints no request in Bun",
    edits: [
      [
        npm,
        "const strictInBun = { verbose: false, tls: { rejectUnauthorized: true } };",
        "const strictInBun = { tls: { rejectUnauthorized: true } };",
      ],
    ],
    fails: [outgoing, "to a server, by the npm package prints no request"],
  },
  {
    promise: "No request is printed with its key",
    edits: [["src/core/guarded-fetch.ts", "    verbose: false,\n", ""]],
    fails: [outgoing, "to a server prints no request"],
  },
  {
    promise: "No key and no query are in the log of nginx",
    edits: [
      [
        "docs/deploy/nginx.conf",
        '\'$time_iso8601 $remote_addr "$request_method $uri"',
        '\'$time_iso8601 $remote_addr $http_authorization "$request_method $request_uri"',
      ],
    ],
    fails: ["blackbox/tls", "without Keyhole it answers 502 or 503, and it never writes a key to a log"],
  },
  {
    promise: "The store for limits evicts nothing",
    edits: [["docs/deploy/compose.yaml", "--maxmemory-policy, noeviction", "--maxmemory-policy, allkeys-lru"]],
    fails: ["blackbox/compose", "lets the store for limits evict nothing"],
  },
  {
    promise: "The container's server has the narrow role",
    edits: [
      [
        "docs/deploy/compose.yaml",
        "postgres://keyhole_serve:${SERVE_PASSWORD:?}",
        "postgres://keyhole:${OWNER_PASSWORD:?}",
      ],
    ],
    fails: ["blackbox/compose", "runs the server under the role that docs/least-privilege.md names"],
  },
  {
    promise: "Proxies speak TLS 1.2 and newer alone",
    edits: [
      [
        "docs/deploy/nginx.conf",
        "ssl_protocols TLSv1.2 TLSv1.3;",
        "ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3; ssl_ciphers ALL:@SECLEVEL=0;",
      ],
    ],
    fails: ["blackbox/tls", "TLS 1.2 and 1.3 are spoken, 1.0 and 1.1 are not"],
  },
  {
    promise: "Proxies compress no answer",
    edits: [
      [
        "docs/deploy/nginx.conf",
        "    location / {",
        "    gzip on;\n    gzip_types *;\n    gzip_min_length 0;\n    location / {",
      ],
    ],
    fails: ["blackbox/tls", "every answer has Keyhole's headers and HSTS, and is not compressed"],
  },
  {
    promise: "No proxy redirects from plain HTTP",
    edits: [["docs/deploy/Caddyfile", "\tauto_https disable_redirects\n", ""]],
    fails: ["blackbox/tls", "plain HTTP is neither served nor redirected"],
  },
  {
    promise: "A misspelt option of a provider gives nothing",
    edits: [
      [
        "src/cli/compose.ts",
        "  return commandFor({ about, rows: [up] }, context)\n    .addCommand(down)",
        "  const program = commandFor({ about, rows: [up] }, context);\n  program.commands[0]?.allowUnknownOption().allowExcessArguments();\n  return program\n    .addCommand(down)",
      ],
    ],
    fails: ["blackbox/transcripts-here", "A mistake or a missing variable fails the service, and sets nothing"],
  },
  {
    promise: "No key goes to a proxy of the environment, in Bun",
    edits: [["src/core/json-request.ts", '      ...(url.startsWith("http:") && { proxy: false }),\n', ""]],
    fails: ["blackbox/npm-package", "reads everything, exactly, and withstands other servers in Bun"],
  },
  {
    promise: "A variable that cannot arrive as it is is named",
    edits: [
      [
        "src/core/settings/children.ts",
        "if (bytesOf(textOf(entry)) !== entry) throw wouldChange(textOf(name));",
        'if (bytesOf(textOf(entry)) === "") throw wouldChange(textOf(name));',
      ],
    ],
    fails: ["blackbox/run-process", "by run --watch"],
  },
  {
    promise: "A variable that cannot arrive as it is is named to programs that Keyhole needs itself",
    edits: [
      ["src/core/settings/inherited.ts", "    if (isChanged) throw wouldChange(name);\n", "    void isChanged;\n"],
    ],
    fails: ["blackbox/run-process", "by the root key's command, ssh and the editor"],
  },
  {
    promise: "None of the runtime's descriptors arrives at the command",
    edits: [
      [
        "src/core/settings/children.ts",
        "if (/^anon_inode:\\[event(?:poll|fd)\\]$/.test(readlinkSync(`/proc/self/fd/${name}`))) return undefined;",
        'if (readlinkSync(`/proc/self/fd/${name}`) === "") return undefined;',
      ],
    ],
    fails: ["blackbox/run-process", "the caller's descriptors reach the command, and no other does"],
  },
  {
    promise: "No signal is blocked for the command",
    edits: [
      [
        "src/cli/replace.ts",
        "  system.sigprocmask(setMask, Buffer.alloc(sigsetBytes), null);\n",
        "  void [setMask, sigsetBytes];\n",
      ],
    ],
    fails: ["blackbox/run-process", "are not blocked"],
  },
  {
    promise: "The npm package trusts no stranger's certificate in Bun",
    edits: [["src/client/npm/client.ts", "tls: { rejectUnauthorized: true } };", "};"]],
    fails: ["blackbox/outgoing", "to a server, by the npm package takes no stranger's certificate"],
  },
  {
    promise: "A read is not spent before the files are refused",
    edits: [["src/cli/run.ts", "      if (files) await findDrift(source, ask);\n", "      void findDrift;\n"]],
    fails: ["blackbox/run", "with --files, no read of the variables is spent for"],
  },
  {
    promise: "No message shows a proxy's password",
    edits: [
      [
        "src/core/guarded-fetch.ts",
        "return address ? `${setting} (${address})` : setting;",
        "return address ? `${setting} (${text})` : setting;",
      ],
    ],
    fails: ["blackbox/proxies", "a proxy is named with its setting, and without its password by run"],
  },
  {
    promise: "A command that `run` starts cannot ask for a token",
    edits: [
      [
        "src/client/run.ts",
        "const isRunners = askedRunner && name.startsWith",
        "const isRunners = !askedRunner && name.startsWith",
      ],
    ],
    fails: ["blackbox/trusts", "runs a command that cannot ask the runner for another token"],
  },
  {
    promise: "A Compose service gets no name that steers, its prefix included",
    edits: [["src/cli/compose.ts", "refuseSteering(set, allowName);", "refuseSteering(variables, allowName);"]],
    fails: ["blackbox/transcripts-here", "Names that steer programs are judged as the services will have them"],
  },
  {
    promise: "Errors show no key that a failure quotes",
    edits: [
      [
        "src/client/wire.ts",
        "const failure = isSafe ? { ...judged, message: masked(message, sent).slice(0, 6000) }",
        "const failure = isSafe ? { ...judged, message: message.slice(0, 6000) }",
      ],
      [
        "src/core/json-request.ts",
        'const reason = typeof found === "string" &&',
        'const reason = found === undefined ? (error as Error).message : typeof found === "string" &&',
      ],
    ],
    fails: ["unit/keyhole-client", "is not shown by the client or by errors"],
  },
  {
    promise: "The server for tests answers as the real one",
    edits: [["src/client/testing.ts", 'one === "*" || one === etag', "one === etag"]],
    fails: ["integration/fake", "answers each request on the wire as the real server does, headers included"],
  },
  {
    promise: "The types of the npm package's answers are those of the API",
    edits: [
      [
        "src/client/npm/answers.ts",
        "export type SecretFile = {\n  readonly name: string;",
        "export type SecretFile = {\n  readonly more?: string;\n  readonly name: string;",
      ],
    ],
    fails: ["unit/types", "the compiler finds no error but these"],
  },
  {
    promise: "The types of the API's answers are those of the npm package",
    edits: [
      ["src/serve/api/answers.ts", "  slug,\n  plan: Type.Enum(", "  slug: Type.Optional(slug),\n  plan: Type.Enum("],
    ],
    fails: ["unit/types", "the compiler finds no error but these"],
  },
  {
    promise: "Ctrl-C reaches a server from npm once",
    edits: [
      [
        ".ci/artifacts/keyhole.js",
        'const fromTerminal = [0, 1, 2].some(isatty) ? ["SIGINT", "SIGQUIT"] : [];',
        "const fromTerminal = [isatty].slice(1);",
      ],
    ],
    fails: ["blackbox/release", "leaves Ctrl-C to the terminal: a server gets it once and drains"],
  },
  {
    promise: "An upgrade of the Debian package keeps settings",
    edits: [[".ci/artifacts/deb.ts", '  write("DEBIAN/conffiles", "/etc/keyhole/keyhole.env\\n");\n', ""]],
    fails: ["blackbox/release", "keeps settings when it is upgraded and removed"],
  },
  {
    promise: "A file of a release that was changed is refused, and a program",
    edits: [["src/cli/version.ts", "listed.find(([, sum]) => sum === sha256)?.[2]", "listed.find(() => sha256)?.[2]"]],
    fails: ["blackbox/release", "a program with one more byte, and a file from elsewhere, are not of the release"],
  },
];
