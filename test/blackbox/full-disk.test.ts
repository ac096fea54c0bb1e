/** A server whose disk is full: no value leaves without its entry, metrics say so, and room is all that it needs. */

import { expect, test } from "bun:test";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { findProgram, withPrograms } from "../support/programs.ts";
import { makeKeys, siteOf } from "../support/server.ts";

const path = "/projects/web/variables?environment=staging";

/** A file system of its own in memory, with what the folder had. A process beside it fills that, as long as a file asks. */
const onSmallDisk = `
  cp -r "$KEYHOLE_DATA" copy && mount -t tmpfs -o size=4m,mode=700 none "$KEYHOLE_DATA" && cp -r copy/. "$KEYHOLE_DATA"
  pid=$$
  while kill -0 $pid; do
    [ ! -e fill ] || cat /dev/zero >> "$KEYHOLE_DATA/zeros" || touch full
    [ -e fill ] || rm -f "$KEYHOLE_DATA/zeros" full
    sleep 0.1
  done 2> /dev/null > /dev/null &
  exec "$0" "$@"`;
const unshare = ["unshare", "--user", "--map-root-user", "--mount"];
// Some systems keep ordinary users from making a file system of their own.
const mayMount = findProgram("unshare") && Bun.spawnSync([...unshare, "true"]).success;

withPrograms(mayMount ? ["mount", "bash"] : ["unshare"], "a server whose disk is full", () => {
  const site = siteOf("sqlite", { staging: { TOKEN: "canary-of-a-full-disk" } });

  test("gives no value, says so, and gives them again once there is room, with no entry lost", async () => {
    const keys = await makeKeys(site, 60, "variables");
    const server = await site.serve({ as: [...unshare, "bash", "-c", onSmallDisk], env: { KEYHOLE_OPS_PORT: "0" } });
    let asked = 0;
    const read = async (more = "") => {
      asked += 1;
      return (await server.get(`${path}${more}`, keys[asked % keys.length]?.key ?? "")).status;
    };
    const readiness = async () => (await fetch(`${server.ops()}/readyz`)).json();
    const batches = async (outcome: string) => {
      const text = await (await fetch(`${server.ops()}/metrics`)).text();
      return Number(new RegExp(`^keyhole_audit_batches_total\\{outcome="${outcome}"\\} (\\d+)$`, "m").exec(text)?.[1]);
    };
    expect([await read(), await batches("durable"), await batches("refused")]).toEqual([200, 1, 0]);

    writeFileSync(join(site.folder, "fill"), "");
    await eventually(() => existsSync(join(site.folder, "full")));
    let answered = 1;
    // What SQLite has taken already is used up first.
    await eventually(async () => {
      const status = await read();
      if (status === 200) answered += 1;
      return status === 503;
    });
    expect([await read(), await read()]).toEqual([503, 503]);
    expect(await read("&metadata_only=true")).toBe(200);
    expect(await batches("refused")).toBeGreaterThan(0);
    expect(await readiness()).toMatchObject({ status: "not_ready", failed: ["audit"] });

    rmSync(join(site.folder, "fill"));
    await eventually(() => !existsSync(join(site.folder, "full")));
    expect(await read()).toBe(200);
    expect(await readiness()).toMatchObject({ status: "ready", failed: [] });
    expect(await batches("durable")).toBe(answered + 1);
    expect(await server.stop()).toBe(0);
  });
});
