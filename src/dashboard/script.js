/* The dashboard's one script: filter, sort, send forms, show a value and take it away again. Text is set as text. */

const shownMs = 30_000;

// The link in the terminal has its code after the #, which browsers send to nobody. It leaves the history at once.
const unlockForm = document.querySelector("form[data-unlock]");
if (unlockForm && location.hash.length > 1) {
  unlockForm.elements.code.value = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", "/");
  unlockForm.requestSubmit();
}

/* Filter */

for (const field of document.querySelectorAll("[data-filter]")) {
  const line = field.closest(".filter");
  const rows = [...line.nextElementSibling.tBodies[0].rows].map((row) => {
    return { row, text: (row.dataset.name ?? row.cells[0].textContent).toLowerCase() };
  });
  const count = line.querySelector("output");
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/);
    let left = 0;
    for (const { row, text } of rows) {
      const isShown = words.every((word) => text.includes(word));
      if (isShown) left++;
      if (row.hidden === isShown) row.hidden = !isShown;
    }
    count.textContent = field.value === "" ? "" : `${left} of ${rows.length}`;
  };
  field.addEventListener("input", filter);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    field.value = "";
    filter();
  });
}

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select") !== null;
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const field = document.querySelector("[data-filter]");
  if (!field) return;
  event.preventDefault();
  field.focus();
});

/* Sort */

for (const button of document.querySelectorAll("button.sort")) {
  button.addEventListener("click", () => {
    const heading = button.closest("th");
    const body = heading.closest("table").tBodies[0];
    const isUp = heading.ariaSort !== "ascending";
    for (const other of heading.parentElement.cells) other.ariaSort = null;
    heading.ariaSort = isUp ? "ascending" : "descending";
    const cellValue = (row) => {
      const cell = row.cells[heading.cellIndex];
      return cell.querySelector("time")?.dateTime ?? cell.textContent;
    };
    const order = new Intl.Collator("en", { numeric: true }).compare;
    const sorted = [...body.rows].map((row) => ({ row, value: cellValue(row) }));
    sorted.sort((a, b) => (isUp ? order(a.value, b.value) : order(b.value, a.value)));
    body.append(...sorted.map(({ row }) => row));
  });
}

/* Times: in the reader's zone, and in UTC on hover */

for (const time of document.querySelectorAll("time")) {
  if (time.textContent !== time.dateTime) continue;
  time.textContent = new Date(time.dateTime).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "long" });
}

document.addEventListener("mouseover", ({ target }) => {
  if (target instanceof HTMLTimeElement) target.title = target.dateTime;
});

/* Boxes: one that checks all that are shown, and how many are checked */

for (const box of document.querySelectorAll("[data-all]")) {
  box.addEventListener("change", () => {
    for (const other of document.getElementsByName(box.dataset.all)) {
      if (!other.closest("tr").hidden) other.checked = box.checked;
    }
  });
}

for (const count of document.querySelectorAll("[data-chosen]")) {
  const form = count.closest("form");
  form.addEventListener("change", () => {
    const chosen = form.querySelectorAll(`[name="${count.dataset.chosen}"]:checked`).length;
    count.textContent = `${chosen} chosen`;
  });
}

/* Changes and secrets */

for (const form of document.querySelectorAll("form[data-change]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void send(form, event.submitter);
  });
}

async function send(form, button) {
  // A button that is disabled would lose the focus.
  if (button.ariaDisabled === "true") return;
  const refusal = form.querySelector(".refusal");
  refusal.textContent = "";
  button.ariaDisabled = "true";
  const answer = ask(form, button);
  // Safari copies nothing later than the click, but takes the promise of a text.
  const copying = form.dataset.secret === "copied" && copy(answer.then(({ secret }) => secret ?? Promise.reject()));
  try {
    const { error, to, secret, notice, again } = await answer;
    if (error !== undefined) refuse(form, error);
    else if (copying) sayCopied(await copying, button, refusal);
    else if (secret !== undefined) show(form, secret, to, notice);
    else location.assign(to);
    if (again !== undefined) refusal.append(" ", linkTo(again, "Sign in again"));
  } catch {
    refusal.textContent = form.dataset.secret === "once" ? lostKey : "The dashboard did not answer. Does it still run?";
  } finally {
    button.ariaDisabled = null;
  }
}

async function ask(form, button) {
  const response = await fetch(form.action, {
    method: "POST",
    headers: { accept: "application/json" },
    body: new URLSearchParams(new FormData(form, button)),
  });
  return response.status === 413 ? { error: "This is more than a page takes. Nothing was done." } : response.json();
}

/** Says what is wrong, and leads to the field that is still empty. */
function refuse(form, error) {
  form.querySelector(".refusal").textContent = error;
  const again = form.querySelector("[name=again]");
  if (again?.value === "") again.focus();
}

const lostKey =
  "No answer came. If a key was made, nobody has its text: look for it in the list of keys and revoke it, then try again.";

function show(form, secret, to, notice) {
  const output = form.querySelector("output.secret");
  output.textContent = secret;
  // A new key is shown once: it stays until the person leaves.
  if (form.dataset.secret === "once") return finish(form, output, to, notice);
  clearTimeout(output.hiding);
  output.hiding = setTimeout(() => output.replaceChildren(), shownMs);
}

/** Whether the browser lets the page copy. @param text - the promise of it */
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

function sayCopied(isCopied, button, refusal) {
  refusal.textContent = isCopied ? "" : "The browser did not let the page copy. Show the text, or allow the clipboard.";
  if (!isCopied || button.textContent === "Copied") return;
  const words = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = words;
  }, 2000);
}

/** After a key was made: copying its text and going on are what is left to do. */
function finish(form, output, to, notice) {
  const refusal = form.querySelector(".refusal");
  const note = element("p", { textContent: notice });
  const button = element("button", { type: "button", textContent: "Copy" });
  button.addEventListener("click", async () => {
    sayCopied(await copy(Promise.resolve(output.textContent)), button, refusal);
  });
  const actions = element("p", { className: "actions" });
  actions.append(button, linkTo(to, "Go to the new key"));
  form.replaceChildren(note, output, actions, refusal);
  button.focus();
}

function linkTo(path, words) {
  return element("a", { href: path, textContent: words });
}

function element(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

// Nothing is left in a page that the browser keeps for going back.
addEventListener("pagehide", () => {
  for (const output of document.querySelectorAll("output.secret")) output.replaceChildren();
});
