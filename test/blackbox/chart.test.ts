/**
 * The Helm chart, rendered by Helm itself: against the types of Kubernetes and of Prometheus Operator, against
 * `keyhole manifest kubernetes`, and against a server that starts as the rendered pod does. No cluster has run it.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";
import { Deployment } from "kubernetes-models/apps/v1";
import { Ingress, NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1";
import { PersistentVolumeClaim, Service } from "kubernetes-models/v1";
import { parseAllDocuments } from "yaml";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { binary, runBinary } from "../support/keyhole.ts";
import { freePort } from "../support/port.ts";
import { type Ran, run, startProgram } from "../support/program.ts";
import { withPrograms } from "../support/programs.ts";

type Manifest = { readonly apiVersion: string; readonly kind: string; readonly metadata: { readonly name: string } };
type Pod = {
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly [Container];
  readonly volumes: readonly { name: string; emptyDir?: object; secret?: object }[];
};
type Container = {
  readonly args: string[];
  readonly image: string;
  readonly env: { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string; key: string } } }[];
  readonly ports: { name: string; containerPort: number }[];
  readonly readinessProbe: { httpGet: { path: string } };
  readonly livenessProbe: { httpGet: { path: string } };
  readonly lifecycle?: object;
  readonly securityContext: { readonly readOnlyRootFilesystem: boolean };
  readonly volumeMounts: readonly { name: string; mountPath: string; readOnly?: boolean }[];
};

const root = join(import.meta.dir, "../..");
const chart = join(root, "docs/deploy/chart");

const small = { rootKey: { secret: "keyhole-root" } };
const large = {
  image: { digest: `sha256:${"a".repeat(64)}`, pullSecrets: [{ name: "registry" }] },
  database: { secret: "keyhole-database" },
  rootKey: { secret: "keyhole-root", key: "key" },
  replicas: 3,
  limiter: { secret: "keyhole-valkey" },
  notary: { enabled: true, database: { secret: "keyhole-notary", key: "url" } },
  witness: "https://witness.example.net#witness.example.net+1d1f8f5a+AQ==",
  env: [{ name: "KEYHOLE_MCP", value: "on" }],
  ingress: { host: "keyhole.example.com", className: "nginx", annotations: { "example.com/a": "b" } },
  networkPolicy: {
    from: [{ namespaceSelector: {} }],
    egress: [{ ports: [{ port: 5432 }], to: [{ ipBlock: { cidr: "10.0.0.0/8" } }] }],
  },
  serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
  externalSecrets: [
    { project: "web", environment: "production" },
    { project: "1e3", environment: "staging", name: "no", namespace: "shop" },
  ],
  podAnnotations: { "example.com/c": "d" },
  pod: { nodeSelector: { "kubernetes.io/os": "linux" }, tolerations: [{ key: "a", operator: "Exists" }] },
};

/** A cluster that chooses the user, as OpenShift does, and fields that the chart has itself. */
const open = {
  ...small,
  user: null,
  lifecycle: { preStop: { exec: { command: ["/usr/bin/keyhole", "version"] } } },
  pod: { securityContext: { supplementalGroups: [5] }, terminationGracePeriodSeconds: 90 },
};

/** By kind: what checks an object, and where its type is. */
const kinds = {
  Deployment: { Model: Deployment, module: "kubernetes-models/apps/v1" },
  Service: { Model: Service, module: "kubernetes-models/v1" },
  PersistentVolumeClaim: { Model: PersistentVolumeClaim, module: "kubernetes-models/v1" },
  Ingress: { Model: Ingress, module: "kubernetes-models/networking.k8s.io/v1" },
  NetworkPolicy: { Model: NetworkPolicy, module: "kubernetes-models/networking.k8s.io/v1" },
  ServiceMonitor: { Model: ServiceMonitor, module: "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1" },
} as const;

withPrograms(["helm"], "the Helm chart", (helm) => {
  let folder: string;
  let rendered: Readonly<Record<"small" | "large" | "open", Manifest[]>>;

  const run = async (words: readonly string[], values: object): Promise<Ran> => {
    const file = join(folder, `${crypto.randomUUID()}.yaml`);
    writeFileSync(file, JSON.stringify(values)); // which is YAML
    const command = [...words, chart, "--namespace", "secrets", "--values", file];
    return runBinary(command, { program: helm, env: { HOME: folder } });
  };
  const render = async (values: object, release = "keyhole", ...words: string[]): Promise<Manifest[]> => {
    const { exitCode, stdout, stderr } = await run(["template", release, ...words], values);
    if (exitCode !== 0) throw new Error(stderr);
    // kubectl reads YAML 1.1, for which `no` without quotes is false.
    const documents = parseAllDocuments(stdout, { version: "1.1" });
    expect([...documents].flatMap(({ errors }) => errors)).toEqual([]); // such as a key that is there twice
    return documents.map((one) => one.toJS() as Manifest | null).filter((one) => one !== null);
  };
  const find = <T>(manifests: readonly Manifest[], kind: string, name: string): T => {
    const found = manifests.find((one) => one.kind === kind && one.metadata.name === name);
    if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
    return found as T;
  };
  const podOf = (manifests: readonly Manifest[], name: string) =>
    find<{ spec: { template: { spec: Pod } } }>(manifests, "Deployment", name).spec.template.spec;
  const containerOf = (manifests: readonly Manifest[], name: string) => podOf(manifests, name).containers[0];

  beforeAll(async () => {
    folder = newFolder();
    rendered = { small: await render(small), large: await render(large), open: await render(open) };
  });

  test.each([
    ["small", small],
    ["large", large],
    ["open", open],
  ])("has nothing that helm lint warns of: %s", async (_, values) => {
    const { exitCode, stdout, stderr } = await run(["lint", "--strict"], values);
    expect({ exitCode, stdout, stderr }).toMatchObject({ exitCode: 0, stderr: "" });
    expect(stdout).not.toMatch(/WARNING|ERROR/);
  });

  test("makes what Kubernetes and Prometheus Operator define, with no other field", async () => {
    const all = Object.values(rendered)
      .flat()
      .filter(({ apiVersion }) => !apiVersion.startsWith("external-"));
    expect([...new Set(all.map(({ kind }) => kind))].sort()).toEqual(Object.keys(kinds).sort());
    for (const manifest of all) {
      const { Model } = kinds[manifest.kind as keyof typeof kinds];
      const { apiVersion, kind } = manifest;
      expect([apiVersion, kind]).toEqual([Model.apiVersion, Model.kind]);
      new Model(manifest as never).validate(); // throws
    }
    expect(await typeErrors(all)).toBe("");
    const typo = structuredClone(all.find(({ kind }) => kind === "Deployment")) as never as {
      spec: { template: { spec: { containers: [Record<string, unknown>] } } };
    };
    typo.spec.template.spec.containers[0]["livnessProbe"] = {};
    expect(await typeErrors([typo as never])).toContain("livnessProbe");
  });

  test("makes for External Secrets what `keyhole manifest kubernetes` prints", async () => {
    const printed = await Promise.all(
      [
        ["-p", "web", "-e", "production"],
        ["-p", "1e3", "-e", "staging", "--name", "no", "--namespace", "shop"],
      ].map(async (words) => {
        const asked = ["manifest", "kubernetes", ...words, "--url", "https://keyhole.example.com", "--json"];
        return JSON.parse((await runBinary(asked, {})).stdout).items;
      }),
    );
    const made = rendered.large.filter(({ apiVersion }) => apiVersion.startsWith("external-"));
    const byName = (a: Manifest, b: Manifest) => (a.metadata.name < b.metadata.name ? -1 : 1);
    expect(made.sort(byName)).toEqual(printed.flat().sort(byName));
  });

  test("names only ports and labels that its pods have", () => {
    for (const manifests of Object.values(rendered)) {
      const pods = manifests.flatMap((one) => {
        if (one.kind !== "Deployment") return [];
        const { metadata, spec } = (one as unknown as { spec: { template: { metadata: object; spec: object } } }).spec
          .template as unknown as { metadata: { labels: Record<string, string> }; spec: { containers: [Container] } };
        return [{ labels: metadata.labels, ports: spec.containers[0].ports.map(({ name }) => name) }];
      });
      const chosen = (selector: Record<string, string>) =>
        pods.filter(({ labels }) => Object.entries(selector).every(([name, value]) => labels[name] === value));
      for (const one of manifests.filter(({ kind }) => kind === "Service")) {
        type Spec = { spec: { selector: Record<string, string>; ports: { targetPort: string }[] } };
        const { selector, ports } = (one as unknown as Spec).spec;
        expect(chosen(selector)).toHaveLength(1);
        for (const { targetPort } of ports) expect(chosen(selector)[0]?.ports).toContain(targetPort);
      }
      for (const one of manifests.filter(({ kind }) => kind === "NetworkPolicy")) {
        type Spec = { spec: { podSelector: { matchLabels: Record<string, string> } } };
        expect(chosen((one as unknown as Spec).spec.podSelector.matchLabels)).toHaveLength(pods.length);
      }
    }
  });

  test("runs the image by its digest, and takes secrets from Secrets alone", () => {
    const [server, notary] = ["keyhole", "keyhole-notary"].map((name) => containerOf(rendered.large, name));
    expect(server?.image).toBe(`registry.example.com/keyhole@${large.image.digest}`);
    expect(containerOf(rendered.small, "keyhole").image).toBe("registry.example.com/keyhole:0.0.0");
    const secrets = (container?: Container) =>
      container?.env.flatMap(({ name, valueFrom }) => (valueFrom ? [[name, valueFrom.secretKeyRef.name]] : []));
    expect(secrets(server)).toEqual([
      ["DATABASE_URL", "keyhole-database"],
      ["KEYHOLE_LIMITER_URL", "keyhole-valkey"],
    ]);
    expect(secrets(notary)).toEqual([["DATABASE_URL", "keyhole-notary"]]);
  });

  test("gives the root key as a file, and a folder for what is temporary beside a root that is read-only", () => {
    for (const name of ["keyhole", "keyhole-notary"]) {
      const { containers, volumes } = podOf(rendered.large, name);
      const [{ env, securityContext, volumeMounts }] = containers;
      expect(securityContext.readOnlyRootFilesystem).toBe(true);
      expect(env).toContainEqual({ name: "KEYHOLE_ROOT_KEY_FILE", value: "/etc/keyhole/root.key" });
      expect(volumeMounts).toContainEqual({ name: "root-key", mountPath: "/etc/keyhole", readOnly: true });
      const items = [{ key: "key", path: "root.key" }];
      expect(volumes).toContainEqual({
        name: "root-key",
        secret: { secretName: "keyhole-root", defaultMode: 0o400, items },
      });
      expect(volumeMounts).toContainEqual({ name: "tmp", mountPath: "/tmp" });
      expect(volumes).toContainEqual({ name: "tmp", emptyDir: {} });
    }
  });

  test("lets a server go on until no Service knows it, and then end in time", async () => {
    const drained = (manifests: readonly Manifest[], name = "keyhole") => {
      const { containers, terminationGracePeriodSeconds } = podOf(manifests, name);
      return [containers[0].lifecycle, terminationGracePeriodSeconds];
    };
    expect(drained(rendered.large)).toEqual([{ preStop: { sleep: { seconds: 5 } } }, 35]);
    expect(drained(rendered.large, "keyhole-notary")).toEqual([undefined, 35]);
    expect(drained(rendered.open)).toEqual([open.lifecycle, 90]);
    expect(drained(await render({ ...small, drainSeconds: 0 }))).toEqual([undefined, 30]);
    expect(drained(await render(small, "keyhole", "--kube-version", "1.29.9"))).toEqual([undefined, 35]);
  });

  test("fixes a user, or leaves it to the cluster", () => {
    const both = { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } };
    const fixed = { runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, fsGroupChangePolicy: "OnRootMismatch" };
    expect(podOf(rendered.large, "keyhole").securityContext).toEqual({ ...both, ...fixed });
    expect(podOf(rendered.open, "keyhole").securityContext).toEqual({ ...both, supplementalGroups: [5] });
  });

  test("remembers the newest audit where a pod may lose it, and asks a witness", () => {
    for (const name of ["keyhole", "keyhole-notary"]) {
      const { env } = containerOf(rendered.large, name);
      expect(env).toContainEqual({ name: "KEYHOLE_CHECKPOINT_FILE", value: "/data/checkpoint" });
      expect(env).toContainEqual({ name: "KEYHOLE_WITNESS", value: large.witness });
    }
    const names = containerOf(rendered.small, "keyhole").env.map(({ name }) => name);
    // On the volume of the embedded database it would go back with it.
    expect(names).not.toContain("KEYHOLE_CHECKPOINT_FILE");
  });

  test("gives no two releases one name, and no name more letters than Kubernetes takes", async () => {
    const releases = ["a", "a-keyhole", "keyhole", "keyhole-keyhole", "r".repeat(53)];
    const all = await Promise.all(releases.map((release) => render({ ...large, externalSecrets: [] }, release)));
    const names = all.flat().map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
    for (const { metadata } of all.flat()) {
      const { name, labels = {} } = metadata as { name: string; labels?: Record<string, string> };
      for (const text of [name, ...Object.values(labels)]) expect([text, text.length <= 63]).toEqual([text, true]);
    }
  });

  test("starts a server whose probes answer", async () => {
    const { args, env, ports, readinessProbe, livenessProbe } = containerOf(rendered.small, "keyhole");
    expect(ports).toEqual([
      { name: "api", containerPort: 4100 },
      { name: "metrics", containerPort: 4101 },
    ]);
    const ops = freePort();
    const here: Readonly<Record<string, string>> = {
      KEYHOLE_DATA: join(folder, "data/keyhole"),
      KEYHOLE_OPS_HOST: "127.0.0.1",
      KEYHOLE_OPS_PORT: String(ops),
      KEYHOLE_ROOT_KEY_FILE: join(folder, "root.key"),
    };
    writeFileSync(join(folder, "root.key"), Buffer.alloc(32, 7).toString("base64"), { mode: 0o600 });
    const settings = Object.fromEntries(env.map(({ name, value }) => [name, here[name] ?? value ?? ""]));
    const all = { HOST: "127.0.0.1", PORT: String(freePort()), ...settings };
    const server = startProgram([binary, ...args], { cwd: folder, env: all });
    try {
      const ask = (path: string) => fetch(`http://127.0.0.1:${ops}${path}`).then(({ status }) => status);
      expect(await eventually(async () => (await ask(readinessProbe.httpGet.path).catch(() => 0)) === 200)).toBe(true);
      expect(await ask(livenessProbe.httpGet.path)).toBe(200);
    } finally {
      await server.stop();
    }
  });

  describe("refuses", () => {
    test.each<[string, object, string | RegExp]>([
      ["no root key", {}, "rootKey.secret is required"],
      ["replicas that each count by themselves", { ...small, replicas: 2 }, "More than one replica needs"],
      ["a notary beside the embedded database", { ...small, notary: { enabled: true } }, "notary.enabled needs"],
      ["a value that it does not have", { ...small, replica: 2 }, /additional propert.* .?replica.? /i],
      ["a digest of another form", { ...small, image: { digest: "sha256:1" } }, /image.digest/],
      ["another environment", { ...small, externalSecrets: [{ project: "web", environment: "x" }] }, /s.0.environment/],
    ])("%s", async (_, values, words) => {
      const { exitCode, stderr } = await run(["template", "keyhole"], values);
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(words);
    });
  });
});

/** What the TypeScript compiler says of objects as literals of their types, which may have no other field. */
async function typeErrors(manifests: readonly Manifest[]): Promise<string> {
  mkdirSync(join(root, "dist"), { recursive: true });
  const folder = mkdtempSync(join(root, "dist/chart-"));
  try {
    const modules = Object.entries(kinds).map(([kind, { module }]) => `import type { I${kind} } from "${module}";`);
    const values = manifests.map((one, at) => `export const v${at}: I${one.kind} = ${JSON.stringify(one)};`);
    writeFileSync(join(folder, "manifests.ts"), [...modules, ...values].join("\n"));
    const options = ["--noEmit", "--ignoreConfig", "--strict", "--skipLibCheck", "--module", "preserve", "--types", ""];
    const command = [join(root, "node_modules/.bin/tsc"), ...options, join(folder, "manifests.ts")];
    return (await run(command)).stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
