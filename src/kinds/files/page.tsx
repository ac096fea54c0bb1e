/** @jsxImportSource preact */
import type { KindPages } from "../../pages/kind-pages.ts";

/** The pages of files. Their contents are for `keyhole files pull`, not for a page. */
export const pages: KindPages = {
  firstStep: "Put one there with a command: keyhole file put.",
};
