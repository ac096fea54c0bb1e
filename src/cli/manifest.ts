import { stringify } from "yaml";
import type { Asked } from "../client/answers.ts";
import { isLoopback } from "../core/json-request.ts";
import { usageProblem } from "../core/problem.ts";
import { input } from "../people/desk/inputs.ts";
import { askedInputs, readAsked, readServer, serverInputs } from "./machine.ts";
import { answer } from "./terminal/answer.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";

const kubernetes = processCommand({
  path: "manifest kubernetes",
  about: "Print the manifests that keep a Kubernetes Secret up to date with External Secrets Operator. It asks nobody.",
  examples: ["keyhole manifest kubernetes -p web -e production --url https://keyhole.example.com > keyhole.yaml"],
  inputs: {
    ...askedInputs,
    url: serverInputs.url,
    name: input("--name <name>", "the Secret that the pods use (default: the project's slug)", parseName),
    namespace: input("--namespace <name>", "its namespace (default: the one that is applied to)", parseName),
  },
  action: async (context, { url, namespace, ...options }) => {
    const asked = readAsked(context, options);
    const { name = parseName(asked.project) } = options;
    const { root, socket } = readServer(context, url);
    if (socket !== undefined) throw usageProblem("A cluster cannot reach a socket of this machine: give a URL.");
    if (isLoopback(new URL(root).hostname)) context.say(`${root} is on this machine: the cluster cannot reach it.`);
    const items = manifests(asked, root, name, namespace);
    // kubectl reads YAML 1.1, for which `no` without quotes is false.
    const yaml = items.map((item) => stringify(item, { lineWidth: 0, compat: "yaml-1.1" })).join("---\n");
    const text = `${instructions(asked, namespace)}${yaml}`;
    await answer(context, { apiVersion: "v1", kind: "List", items }, "", text);
  },
});

export const manifest: CommandGroup = {
  about: "Manifests for systems that fetch from Keyhole, filled in.",
  rows: [kubernetes],
};

/** @see https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-subdomain-names */
function parseName(text: string): string {
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)) return text;
  throw usageProblem(
    "A name in Kubernetes has at most 63 small letters, digits and -, and no - at its ends: give --name.",
  );
}

/** The store and the Secret of the key. Each project and environment has its own. */
function storeName({ project, environment }: Asked): string {
  return `keyhole-${project}-${environment}`;
}

/** What to do first. The key is in no manifest. */
function instructions(asked: Asked, namespace: string | undefined): string {
  const store = storeName(asked);
  const at = namespace === undefined ? "" : ` --namespace ${namespace}`;
  return `# Once: a key that reads this environment alone, as a Secret that the operator may hand to its webhook.
# keyhole key create --org ORG --name ${store} --surface ci_action --project ${asked.project} --env ${asked.environment} --out k8s.key
# tr -d '\\n' < k8s.key | kubectl create secret generic ${store}${at} --from-file=key=/dev/stdin
# kubectl label secret ${store}${at} external-secrets.io/type=webhook
#
# deletionPolicy stays Retain: with Delete, a 404 from Keyhole would delete the Secret of running pods.
`;
}

/**
 * The operator checks the host as it is written, so only the query is a template. It escapes what it inserts.
 * @see https://external-secrets.io/latest/provider/webhook/
 */
function manifests(asked: Asked, root: string, name: string, namespace: string | undefined): object[] {
  const store = storeName(asked);
  const metadata = (own: string) => ({ name: own, ...(namespace !== undefined && { namespace }) });
  const webhook = {
    url: `${root}/secrets?project={{ .remoteRef.key }}&environment=${asked.environment}`,
    method: "GET",
    timeout: "10s", // without it the operator waits forever
    headers: { Authorization: "Bearer {{ .auth.key }}" },
    result: { jsonPath: "$.secrets" },
    secrets: [{ name: "auth", secretRef: { name: store } }],
  };
  return [
    {
      apiVersion: "external-secrets.io/v1",
      kind: "SecretStore",
      metadata: metadata(store),
      spec: { provider: { webhook } },
    },
    {
      apiVersion: "external-secrets.io/v1",
      kind: "ExternalSecret",
      metadata: metadata(name),
      spec: {
        refreshInterval: "1h",
        secretStoreRef: { kind: "SecretStore", name: store },
        target: { name, creationPolicy: "Owner", deletionPolicy: "Retain" },
        dataFrom: [{ extract: { key: asked.project } }],
      },
    },
  ];
}
