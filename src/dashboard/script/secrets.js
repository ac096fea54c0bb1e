// @ts-check

/* Secrets: shown for a while, copied, and taken away again. */

const shownMs = 30_000;

/** How to take away each value that is shown, by the button that showed it. @type {Map<HTMLButtonElement, () => void>} */
const hiding = new Map();

/** The place for a form's secret. @param {HTMLFormElement} form */
function secretOf(form) {
  return every("output", ".secret", form)[0];
}

/**
 * Shows a value for a while. Its button counts down, and hides it if it is pressed again.
 * @param {HTMLOutputElement} output
 * @param {HTMLButtonElement} button
 * @param {string} secret
 */
function show(output, button, secret) {
  const { textContent: words, ariaLabel: label } = button;
  const endsAt = performance.now() + shownMs;
  const count = () => {
    button.textContent = `Hide (${Math.ceil((endsAt - performance.now()) / 1000)} s)`;
  };
  output.replaceChildren(secret === "" ? element("em", { textContent: "empty" }) : secret);
  output.tabIndex = 0; // a long one scrolls in its box
  const note = element("small", { textContent: aboutValue(secret) });
  output.after(note);
  button.ariaLabel = label?.replace(words, "Hide") ?? null;
  count();
  const counting = setInterval(count, 1000);
  const hide = () => {
    clearInterval(counting);
    clearTimeout(ending);
    hiding.delete(button);
    output.replaceChildren();
    output.removeAttribute("tabindex");
    note.remove();
    button.textContent = words;
    button.ariaLabel = label;
  };
  const ending = setTimeout(hide, shownMs);
  hiding.set(button, hide);
}

/** How long a value is, and what in it nobody sees. @param {string} secret */
function aboutValue(secret) {
  const unseen = [...secret].filter((one) => /[\p{C}\p{Zl}\p{Zp}\u00a0]/u.test(one) && !"\n\t".includes(one));
  const codes = [...new Set(unseen)].map(
    (one) => `U+${Number(one.codePointAt(0)).toString(16).toUpperCase().padStart(4, "0")}`,
  );
  const length = [...secret].length;
  return [
    `${length.toLocaleString("en")} character${length === 1 ? "" : "s"}`,
    ...(/^\s/.test(secret) ? ["begins with a blank"] : []),
    ...(secret.endsWith("\n") ? ["ends in a newline"] : /\s$/.test(secret) ? ["ends with a blank"] : []),
    ...(codes.length > 0 ? [`with what cannot be seen: ${codes.join(", ")}`] : []),
  ].join(", ");
}

const emptyAfterMs = 5 * 60_000;
let emptying = 0;

/**
 * Puts a secret where somebody changes it, until they press no key for some minutes.
 * @param {HTMLFormElement} form
 * @param {string} secret
 * @param {Record<string, string | number>} [seen]
 */
function typeInto(form, secret, seen = {}) {
  fill(form, { ...seen, text: secret });
  const later = () => {
    clearTimeout(emptying);
    emptying = setTimeout(() => {
      empty(form);
      refusalOf(form).textContent = "The values are gone: no key was pressed for five minutes.";
    }, emptyAfterMs);
  };
  form.onkeydown = form.oninput = later;
  later();
  const field = fieldOf(form, "text");
  if (!field) return;
  field.setSelectionRange(0, 0);
  field.scrollTop = 0;
  field.focus();
}

/** Takes the secret away, with what was changed in it. @param {HTMLFormElement} form */
function empty(form) {
  clearTimeout(emptying);
  form.onkeydown = form.oninput = null;
  fill(form, { text: "", base: "" });
  unsaved.delete(form);
}

/** Whether the browser lets the page copy. @param {Promise<string>} text */
async function copy(text) {
  try {
    const blob = text.then((text) => new Blob([text], { type: "text/plain" }));
    blob.catch(() => {});
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
    return true;
  } catch {
    return false;
  }
}

/**
 * @param {boolean} isCopied
 * @param {HTMLButtonElement} button
 * @param {HTMLElement} [refusal] - where a form says what is wrong
 */
function sayCopied(isCopied, button, refusal) {
  if (refusal) refusal.textContent = isCopied ? "" : notCopied;
  else if (!isCopied) say(notCopied);
  if (!isCopied) return;
  // The button may be gone by now: its row had the pointer.
  say(`${button.ariaLabel?.replace(/^Copy /, "") ?? "The text"} is on the clipboard.`);
  if (button.textContent === "Copied") return;
  const words = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = words;
  }, 2000);
}

const notCopied = "The browser did not let the page copy. Show the text, or allow the clipboard.";

/**
 * After a key was made, which is shown once: copying its text, using it and going on are what is left to do.
 * @param {HTMLFormElement} form
 * @param {string} secret
 * @param {string} to
 * @param {Answer} answer
 */
function finish(form, secret, to, { notice = "", use }) {
  const output = secretOf(form);
  output.textContent = secret;
  const refusal = refusalOf(form);
  const note = element("p", { textContent: notice });
  const copier = (/** @type {HTMLElement} */ source) =>
    copying(element("button", { type: "button", textContent: "Copy" }), source, refusal);
  const button = copier(output);
  const actions = element("p", { className: "actions" });
  actions.append(button, linkTo(to, "Go on"));
  form.replaceChildren(note, output, actions, refusal);
  if (use !== undefined) {
    const lines = element("output", { className: "secret", textContent: use.lines });
    form.append(element("p", { textContent: use.words }), lines, copier(lines));
  }
  button.focus();
}

for (const button of every("button", "[data-copies]")) {
  copying(button, document.getElementById(button.dataset.copies ?? ""));
}

/**
 * Makes a button copy a text.
 * @param {HTMLButtonElement} button
 * @param {HTMLElement | null} source
 * @param {HTMLElement} [refusal]
 */
function copying(button, source, refusal) {
  button.addEventListener("click", async () => {
    sayCopied(await copy(Promise.resolve(source?.textContent ?? "")), button, refusal);
  });
  return button;
}

// Nothing is left in a page that the browser keeps for going back.
addEventListener("pagehide", () => {
  for (const hide of hiding.values()) hide();
  for (const output of every("output", ".secret")) output.replaceChildren();
  for (const button of every("button", "[data-secret=typed]")) if (button.form) empty(button.form);
});
