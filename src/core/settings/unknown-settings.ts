import { didYouMean } from "../words/nearest.ts";
import { clientSettingNames, type Env, isService, settingNames } from "./setting-names.ts";

/**
 * A sentence for each variable that looks like a setting of Keyhole and is none, such as a misspelt one: it would turn
 * off in silence what it should turn on. What Kubernetes makes of a Service called keyhole is none and no mistake, and
 * so is the variable with a token that KEYHOLE_OIDC names.
 */
export function unknownSettings(env: Env): string[] {
  const known: readonly string[] = [...settingNames, ...clientSettingNames].filter((name) => name.startsWith(prefix));
  const token = env["KEYHOLE_OIDC"]?.replace(/^env:/, "");
  return Object.entries(env).flatMap(([name, value]) => {
    const isOthers = !name.startsWith(prefix) || known.includes(name) || name === token || isService(name, value ?? "");
    if (isOthers) return [];
    const others = known.map((one) => one.slice(prefix.length));
    const advice = didYouMean(name.slice(prefix.length), others, prefix) || " Unset it, or give it another name.";
    return [`${name} is not a setting of Keyhole.${advice}`];
  });
}

const prefix = "KEYHOLE_";
