import { beforeAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { newFolder } from "../support/folder.ts";
import { withPrograms } from "../support/programs.ts";

const docs = join(import.meta.dir, "../../docs");
const rulesFile = join(docs, "prometheus/alerts.yml");
const { groups } = parse(readFileSync(rulesFile, "utf8")) as { groups: { rules: { alert: string }[] }[] };
const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));

/** Values of a series, one a minute, from the first minute on. */
type Series = Readonly<Record<string, readonly number[]>>;

const minutes = 90;
const always = (value: number) => Array.from({ length: minutes }, () => value);
/** A counter that grows by `by` each `every` minutes, after `from` minutes and for `count` times. */
const grows = (by: number, every = 1, { from = 0, count = minutes } = {}) =>
  Array.from({ length: minutes }, (_, at) => by * Math.min(count, Math.max(0, Math.floor((at - from) / every))));

const requests = (code: string, route = "/projects/{slug}/variables") =>
  `keyhole_requests_total{instance="a",route="${route}",code="${code}"}`;
const requestsOf = (part: "count" | "bucket") =>
  `keyhole_request_duration_seconds_${part}{instance="a",route="/organization",stage="total"${part === "bucket" ? ',le="0.5"' : ""}}`;
const commits = (part: "count" | "bucket") =>
  `keyhole_audit_commit_duration_seconds_${part}{instance="a"${part === "bucket" ? ',le="0.25"' : ""}}`;
const expiry = (kind: string) => `keyhole_next_expiry_days{instance="a",kind="${kind}"}`;
const up: Series = { 'up{instance="a",job="keyhole"}': always(1) };
const well: Series = { ...up, 'keyhole_ready{instance="a"}': always(1) };

/** What is scraped, and what fires after `at` minutes (by default the last one). */
type Scenario = readonly [name: string, series: Series, fires: readonly string[], at?: number];
/** Of a server that is up and ready. */
const wellScenarios: readonly Scenario[] = [
  ["a healthy server", { [requests("ok")]: grows(100), [requests("unavailable")]: always(0) }, []],
  ["a healthy server that nobody asks", { [requests("unavailable")]: always(0) }, []],
  [
    "a quiet server whose one job, every five minutes, is refused",
    { [requests("ok")]: always(7), [requests("unavailable")]: grows(1, 5) },
    ["KeyholeUnavailable"],
    16,
  ],
  [
    "the same job, refused once",
    { [requests("ok")]: grows(1, 5), [requests("unavailable")]: grows(1, 1, { from: 50, count: 1 }) },
    [],
    55,
  ],
  [
    "a busy server that refuses one request in fifty",
    { [requests("ok")]: grows(60_000), [requests("unavailable")]: grows(1200) },
    ["KeyholeUnavailable"],
  ],
  ["one in a thousand refused", { [requests("ok")]: grows(60_000), [requests("unavailable")]: grows(60) }, []],
  [
    "one decryption that failed, the first of a quiet server",
    { [requests("decryption_failed")]: grows(1, 1, { from: 80, count: 1 }) },
    ["KeyholeDecryptionFailed"],
  ],
  ["one defect", { [requests("internal_error")]: grows(1, 1, { from: 80, count: 1 }) }, ["KeyholeDefect"]],
  [
    "one use of a canary",
    { 'keyhole_canary_uses_total{instance="a",kind="key"}': grows(1, 1, { from: 80, count: 1 }) },
    ["KeyholeCanaryUsed"],
  ],
  [
    "one use of a key from elsewhere",
    { 'keyhole_keys_elsewhere_total{instance="a"}': grows(1, 1, { from: 80, count: 1 }) },
    ["KeyholeKeyElsewhere"],
  ],
  [
    "one read too many by a job",
    { 'keyhole_trust_overuses_total{instance="a"}': grows(1, 1, { from: 80, count: 1 }) },
    ["KeyholeTrustOverused"],
  ],
  [
    "one audit batch that was not written",
    {
      'keyhole_audit_batches_total{instance="a",outcome="durable"}': grows(100),
      'keyhole_audit_batches_total{instance="a",outcome="refused"}': grows(1, 1, { from: 80, count: 1 }),
    },
    ["KeyholeAuditNotWritten"],
  ],
  ["a segment of the audit was changed", { 'keyhole_audit_flaws{instance="a"}': always(1) }, ["KeyholeAuditFlaws"]],
  [
    "a notary that comes round no more",
    { 'keyhole_notary_round_age_seconds{instance="a"}': grows(60) },
    ["KeyholeNotaryLate"],
  ],
  [
    "entries that no notary signs",
    { 'keyhole_audit_unsigned_age_seconds{instance="a"}': grows(60) },
    ["KeyholeAuditUnsigned"],
  ],
  [
    "entries that a failover lost for good",
    { 'keyhole_audit_lost_total{instance="a",kind="unknown"}': grows(1, 1, { from: 80, count: 1 }) },
    ["KeyholeAuditLost"],
  ],
  ["a tree that is locked", { 'keyhole_comparison_age_seconds{instance="a"}': grows(60) }, ["KeyholeNotCompared"]],
  ["slow audit commits", { [commits("count")]: grows(1, 4), [commits("bucket")]: always(0) }, ["KeyholeAuditSlow"]],
  ["one slow commit in a thousand", { [commits("count")]: grows(60_000), [commits("bucket")]: grows(59_940) }, []],
  ["a queue of audit entries", { 'keyhole_audit_queue_entries{instance="a"}': always(2000) }, ["KeyholeAuditQueue"]],
  ["slow requests", { [requestsOf("count")]: grows(1, 4), [requestsOf("bucket")]: always(0) }, ["KeyholeSlow"]],
  ["a slow one", { [requestsOf("count")]: grows(1, 1, { from: 80, count: 1 }), [requestsOf("bucket")]: always(0) }, []],
  [
    "a quiet server with a job, every quarter of an hour, whose key has expired, among scanners",
    {
      [requests("ok")]: grows(1),
      [requests("unauthorized")]: grows(1, 15),
      [requests("not_found", "none")]: grows(50),
    },
    ["KeyholeUnknownKeys"],
  ],
  ["two mistyped keys", { [requests("unauthorized")]: grows(1, 1, { from: 80, count: 2 }) }, []],
  ["a lost store for limits", { 'keyhole_limiter_fallback{instance="a"}': always(1) }, ["KeyholeLimiterFallback"]],
  ["a worker that dies", { 'keyhole_worker_restarts_total{instance="a"}': grows(1, 4) }, ["KeyholeWorkersDying"]],
  ["ten days left", { [expiry("key")]: always(10), [expiry("variable")]: always(1) }, ["KeyholeKeyExpiresSoon"]],
  ["a key with two days left", { [expiry("key")]: always(2) }, ["KeyholeKeyExpiresNow", "KeyholeKeyExpiresSoon"]],
  ["a key with three weeks left", { [expiry("key")]: always(21) }, []],
  ["a variable that is overdue", { [expiry("variable")]: always(-1) }, ["KeyholeVariableOverdue"]],
];
const scenarios: readonly Scenario[] = [
  ["a server that is gone", { 'up{instance="a",job="keyhole"}': always(0) }, ["KeyholeDown"]],
  ["scrapes under another job's name", { 'up{instance="a",job="keyhol"}': always(1) }, ["KeyholeDown"]],
  ["a lost database that nobody asks for", { ...up, 'keyhole_ready{instance="a"}': always(0) }, ["KeyholeNotReady"], 2],
  ...wellScenarios.map(([name, series, ...rest]): Scenario => [name, { ...well, ...series }, ...rest]),
];

test("the alert rules are each explained in docs/incidents.md, in their order, and fire in a scenario", () => {
  const page = readFileSync(join(docs, "incidents.md"), "utf8");
  expect(page.match(/^## Keyhole\w+$/gm)?.map((line) => line.slice(3))).toEqual(alerts);
  expect([...new Set(scenarios.flatMap(([, , fires]) => fires))].sort()).toEqual(alerts.toSorted());
});

withPrograms(["promtool"], "what Prometheus makes of docs/", (promtool) => {
  let folder: string;
  beforeAll(() => {
    folder = newFolder();
  });

  /** Writes a file for promtool; JSON is YAML. */
  const written = (name: string, content: unknown) => {
    writeFileSync(join(folder, name), JSON.stringify(content));
    return join(folder, name);
  };
  const expectAccepted = (...args: string[]) => {
    const ran = Bun.spawnSync([promtool, ...args]);
    const said = ran.exitCode === 0 ? "" : `${ran.stdout}${ran.stderr}`;
    expect({ code: ran.exitCode, said }).toEqual({ code: 0, said: "" });
  };

  test("the alert rules and the configuration are what Prometheus takes", () => {
    expectAccepted("check", "rules", rulesFile);
    expectAccepted("check", "config", join(docs, "prometheus/prometheus.yml"));
  });

  test.each(scenarios)("%s", (_, series, fires, at = minutes - 1) => {
    const file = written("scenario.yml", {
      rule_files: [rulesFile],
      evaluation_interval: "1m",
      tests: [
        {
          interval: "1m",
          input_series: Object.entries(series).map(([name, values]) => ({ series: name, values: values.join(" ") })),
          promql_expr_test: [
            {
              expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
              eval_time: `${at}m`,
              exp_samples: fires.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
            },
          ],
        },
      ],
    });
    expectAccepted("test", "rules", file);
  });

  test("every query of the dashboard is what Prometheus takes", () => {
    const { panels } = JSON.parse(readFileSync(join(docs, "grafana/keyhole.json"), "utf8")) as {
      panels: { targets: { expr: string }[] }[];
    };
    const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    expect(queries.length).toBeGreaterThan(15);
    const rules = queries.map((expr, at) => ({
      record: `keyhole:panel:${at}`,
      expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$instance", ".*"),
    }));
    expectAccepted("check", "rules", written("dashboard.yml", { groups: [{ name: "dashboard", rules }] }));
  });
});
