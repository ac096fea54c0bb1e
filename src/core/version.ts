import { version as inPackage, publisher } from "../../package.json";

/** What `bun run compile` finds. There is none in a checkout, and an empty one where git knows of no commit. */
declare const BUILD_COMMIT: string | undefined;
const commit = typeof BUILD_COMMIT === "string" ? BUILD_COMMIT : "";

/**
 * The version of this program. Between releases it ends in the commit, as in
 * `0.3.0-dev+1a2b3c4d5e6f`, or `0.3.0-dev+1a2b3c4d5e6f.changed` if files differed from it.
 */
export const version = inPackage.endsWith("-dev") && commit !== "" ? `${inPackage}+${commit}` : inPackage;

/** minisign's public key, with which whoever publishes signs a release; empty if nobody has. */
export const releaseKey = publisher.key;
