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
    // A filter inside a form sends nothing.
    if (event.key === "Enter") event.preventDefault();
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

/* Times */

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
  const refusal = form.querySelector(".refusal");
  refusal.textContent = "";
  button.disabled = true;
  try {
    const response = await fetch(form.action, {
      method: "POST",
      headers: { accept: "application/json" },
      body: new URLSearchParams(new FormData(form, button)),
    });
    const isTooLong = response.status === 413;
    const { error, to, secret, again } = isTooLong
      ? { error: "This is more than a page takes." }
      : await response.json();
    if (error !== undefined) refusal.textContent = error;
    else if (secret !== undefined) await take(form, secret, button, to);
    else location.assign(to);
    if (again !== undefined) refusal.append(" ", linkTo(again, "Sign in again"));
  } catch {
    refusal.textContent = form.dataset.secret === "once" ? lostKey : "The dashboard did not answer. Does it still run?";
  } finally {
    button.disabled = false;
  }
}

const lostKey =
  "No answer came. If a key was made, nobody has its text: look for it in the list of keys and revoke it, then try again.";

async function take(form, secret, button, to) {
  if (form.dataset.secret === "copied") return copy(secret, button);
  const output = form.querySelector("output.secret");
  output.textContent = secret;
  // A new key is shown once: it stays until the person leaves.
  if (form.dataset.secret === "once") return finish(form, output, to);
  setTimeout(() => {
    output.textContent = "";
  }, shownMs);
}

async function copy(text, button) {
  await navigator.clipboard.writeText(text);
  const words = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = words;
  }, 2000);
}

/** After a key was made: copying its text and going on are what is left to do. */
function finish(form, output, to) {
  const note = element("p", { textContent: "Store it now: it is not shown again." });
  const button = element("button", { type: "button", textContent: "Copy" });
  button.addEventListener("click", () => void copy(output.textContent, button));
  const actions = element("p", { className: "actions" });
  actions.append(button, linkTo(to, "Go to the new key"));
  form.replaceChildren(note, output, actions);
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
  for (const output of document.querySelectorAll("output.secret")) output.textContent = "";
});
