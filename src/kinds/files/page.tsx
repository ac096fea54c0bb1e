/** @jsxImportSource preact */
import type { KindPages } from "../../dashboard/parts/kind-pages.ts";
import { severalOf } from "../several.tsx";
import { files } from "./entry.ts";
import { remove } from "./operations.ts";

/** The pages of files. Their contents are for `keyhole files pull`, not for a page. */
export const pages: KindPages = {
  ...severalOf(files, remove),
  firstStep: "Put one there with a command: keyhole file put.",
};
