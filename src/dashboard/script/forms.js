// @ts-check

/* Forms: what is typed is kept until it is saved, and a refusal leads to what is wrong. */

for (const field of every("textarea", "[name^='value.']")) {
  const button = element("button", { type: "button", className: "quiet", textContent: "Generate 32 characters" });
  button.addEventListener("click", () => {
    const bytes = crypto.getRandomValues(new Uint8Array(24));
    field.value = btoa(String.fromCharCode(...bytes))
      .replaceAll("+", "-")
      .replaceAll("/", "_");
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.focus();
  });
  field.after(button);
}

/** The forms with a text that nothing was done with yet. Browsers keep none of it, so leaving asks. @type {Set<HTMLFormElement>} */
const unsaved = new Set();

/** @param {HTMLFormElement} form */
function hasText(form) {
  const fields = /** @type {HTMLInputElement[]} */ ([...form.elements]);
  return fields.some((one) => one.matches("textarea, [autocomplete=off]") && one.value !== one.defaultValue);
}

addEventListener("beforeunload", (event) => {
  if (unsaved.size > 0) event.preventDefault();
});

for (const form of every("form", "[data-change]")) {
  form.addEventListener("input", () => (hasText(form) ? unsaved.add(form) : unsaved.delete(form)));
  form.addEventListener("submit", (event) => {
    const button = /** @type {HTMLButtonElement} */ (event.submitter);
    // A button that only shows something leads to a page that has what was typed.
    if (button.formMethod === "get") {
      unsaved.delete(form);
      return;
    }
    event.preventDefault();
    void send(form, button);
  });
}

/**
 * @param {HTMLFormElement} form
 * @param {HTMLButtonElement} button
 */
async function send(form, button) {
  // A button that is disabled would lose the focus.
  if (button.ariaDisabled === "true") return;
  const hide = hiding.get(button);
  if (hide) return hide();
  const refusal = refusalOf(form);
  if (button.dataset.secret === "typed" && unsaved.has(form)) {
    refusal.textContent = "That would replace what you typed. Empty the text first.";
    return;
  }
  button.ariaDisabled = "true";
  const answer = ask(form, button);
  refusal.textContent = "";
  // "Save" becomes "Saving". Words that this would spell wrong (Put, Not) stay as they are.
  const doing = (button.textContent ?? "").replace(/^(?!Put|Not)([A-Z]\w*[^e\W])e?\b/, "$1ing");
  const slow = setTimeout(() => say(`${doing} …`), 1000);
  // Safari copies nothing later than the click, but takes the promise of a text.
  const how = button.dataset.secret ?? form.dataset.secret;
  const copying = how === "copied" ? copy(answer.then(({ secret }) => secret ?? Promise.reject())) : undefined;
  try {
    const { error, to = "/", secret, ended } = await answer;
    if (error === undefined) unsaved.delete(form);
    const [shower] = ended ? every("button", "[data-secret=typed]", form) : [];
    if (shower) empty(form);
    if (error !== undefined) refuse(form, shower ?? button, await answer);
    else if (copying) sayCopied(await copying, button, refusal);
    else if (secret === undefined) location.assign(to);
    else if (how === "typed") typeInto(form, secret, (await answer).seen);
    else if (how === "shown") show(secretOf(form), button, secret);
    else finish(form, secret, to, await answer);
  } catch {
    refusal.textContent = how === "once" ? lostKey : `${unanswered()} What you typed is still here.`;
  } finally {
    clearTimeout(slow);
    button.ariaDisabled = null;
  }
}

/** Where a form says what is wrong. @param {HTMLFormElement} form */
function refusalOf(form) {
  return every("*", "[role=alert]", form)[0];
}

/**
 * @param {HTMLFormElement} form
 * @param {HTMLButtonElement} button
 * @returns {Promise<Answer>}
 */
async function ask(form, button) {
  const response = await fetch(button.getAttribute("formaction") ?? form.action, {
    method: "POST",
    headers: { accept: "application/json" },
    body: new URLSearchParams(/** @type {any} */ (new FormData(form, button))),
  });
  return response.status === 413
    ? { error: "This form takes at most 4096 KiB. Nothing was done: use a command." }
    : response.json();
}

/**
 * Says what is wrong, and leads to the field that is.
 * @param {HTMLFormElement} form
 * @param {HTMLButtonElement} button
 * @param {Answer} answer
 */
function refuse(form, { className, textContent }, { error = "", unlessSeen, field, again }) {
  const refusal = refusalOf(form);
  refusal.textContent = error;
  if (again !== undefined) {
    const link = linkTo(again, "Sign in in a new tab");
    refusal.append(
      " ",
      Object.assign(link, { target: "_blank", rel: "noreferrer" }),
      `, then press ${textContent} here.`,
    );
  }
  if (unlessSeen !== undefined) {
    const words = className === "danger" ? "Delete it all the same" : "Save over it";
    const button = element("button", { className, textContent: words });
    button.addEventListener("click", () => fill(form, unlessSeen));
    refusal.append(" ", button);
  }
  const wrong = field === undefined ? null : fieldOf(form, field);
  if (!wrong) return;
  const hiding = wrong.closest("details");
  if (hiding) hiding.open = true;
  wrong.ariaInvalid = "true";
  wrong.addEventListener("input", () => (wrong.ariaInvalid = null), { once: true });
  wrong.focus();
  const line = Number(/^line (\d+): /.exec(error)?.[1] ?? 0);
  if (line === 0) return;
  const lines = wrong.value.split("\n");
  const before = lines.slice(0, line - 1).join("\n").length + Number(line > 1);
  wrong.setSelectionRange(before, before + (lines[line - 1]?.length ?? 0));
  // Browsers do not scroll to what a script selects. Lines that are folded in two are few.
  wrong.scrollTop = (wrong.scrollHeight * (line - 2)) / lines.length;
}

/**
 * @param {HTMLFormElement} form
 * @param {Record<string, string | number>} fields - their texts, by their names
 */
function fill(form, fields) {
  for (const [name, value] of Object.entries(fields)) {
    const field = fieldOf(form, name);
    if (field) field.value = String(value);
  }
}

const lostKey =
  "No answer came. If a key was made, nobody has its text: look for it in the list of keys and revoke it, then try again.";
