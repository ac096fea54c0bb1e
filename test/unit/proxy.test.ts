import { expect, test } from "bun:test";
import { proxyOf } from "../../src/core/guarded-fetch.ts";

const named = "HTTPS_PROXY (proxy.test:3128)";
const HTTPS_PROXY = "http://user:geheim@proxy.test:3128";
test.each<[string, Readonly<Record<string, string>>, string | undefined]>([
  ["https://keyhole.test", {}, undefined],
  ["https://keyhole.test", { HTTPS_PROXY }, named],
  ["https://keyhole.test", { HTTPS_PROXY: "proxy.test:3128" }, named],
  ["https://keyhole.test", { HTTPS_PROXY: "::::" }, "HTTPS_PROXY"],
  ["https://keyhole.test", { HTTPS_PROXY, https_proxy: "http://other.test:1" }, "https_proxy (other.test:1)"],
  ["https://keyhole.test", { HTTPS_PROXY, https_proxy: "" }, named],
  ["https://keyhole.test", { HTTP_PROXY: HTTPS_PROXY }, undefined],
  // Keyhole asks this machine without a proxy.
  ["http://127.0.0.1:4100", { HTTPS_PROXY, ALL_PROXY: HTTPS_PROXY }, undefined],
  ["https://keyhole.test", { HTTPS_PROXY, NO_PROXY: "*" }, undefined],
  ["https://keyhole.test", { HTTPS_PROXY, NO_PROXY: "a, KEYHOLE.test" }, undefined],
  ["https://keyhole.test", { HTTPS_PROXY, NO_PROXY: "*.test" }, undefined],
  ["https://keyhole.test", { HTTPS_PROXY, NO_PROXY: "hole.test" }, named],
  ["https://keyhole.test", { HTTPS_PROXY, NO_PROXY: "keyhole.test:443" }, undefined],
  ["https://keyhole.test:4983", { HTTPS_PROXY, NO_PROXY: "keyhole.test:443" }, named],
  ["https://keyhole.test", { HTTPS_PROXY, no_proxy: "other.test", NO_PROXY: "keyhole.test" }, named],
])("%s with %j is asked through %j", (url, env, expected) => expect(proxyOf(url, env)).toBe(expected));
