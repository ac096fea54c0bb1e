// @ts-check

/*
 * The dashboard's script. Its five files are one script in the browser, in this order: page, lists, search, forms,
 * secrets. So they share their names, and what runs at once needs only files before its own. Text is set as text.
 *
 * What the pages promise it, all of it (a test compares):
 *
 * data-unlock   a form with the fields `code` and `page`: the code after the # of the address goes in, and it is sent
 * data-change   a form that the script sends. It has an element with role=alert, for what is wrong
 * data-secret   of a form or one of its buttons: what becomes of the secret in the answer. `once`: it takes the form's
 *               place. `shown`: it is in the form's output.secret for 30 seconds. `copied`: to the clipboard. `typed`: into
 *               the form's text, until somebody leaves the page, sends the form after the session ended, or presses no
 *               key for five minutes
 * data-copy     a form after a table: rows get a Copy button below the headings that this names, where a time is
 * data-rows     a form around a table: Edit in a row opens a field below each heading that this names, whether a value is
 *               there or not
 * data-group    a part of a table whose rows can be folded. If it begins here, its first row heads them
 * data-copies   a button that copies the text of the element with this id
 * data-filter   a field that filters the table after its line. The line has an output, for the count
 * data-name     a row: what the filter searches in place of the first cell
 * data-sort     a row of headings that sort
 * data-all      a box that checks all boxes of this name that are shown in the table after its line
 * data-day      a time in a row of a table: it keeps the time of day, and each day stands above its rows
 * data-count    a part of a form: the form's button says how many boxes are checked in it, in place of the #
 * data-awaits   the page loads itself until this is gone. After ten minutes it says these words
 * data-heading  a cell: the style sheet says it on a phone. The script does not use it
 *
 * And `time`, `output.secret`, fields for moments in UTC and the field `q` of the header, wherever they are.
 */

/**
 * What the server answers to a form.
 * @typedef {object} Answer
 * @property {string} [to] - the page to go to
 * @property {string} [error] - why nothing was done. Then there may be:
 * @property {string} [field] - the field that is wrong
 * @property {string} [again] - where to sign in: in another tab, so that what was typed stays
 * @property {true} [ended] - nobody is signed in any more
 * @property {Record<string, number>} [unlessSeen] - the fields of a form that saw what somebody else wrote, and writes over it
 * @property {Record<string, string | number>} [seen] - the fields of the form that say what the secret is of
 * @property {string} [secret] - what was asked for. For a new key, there are also:
 * @property {string} [notice]
 * @property {{ words: string, lines: string }} [use] - lines that use it
 */

/**
 * @template {keyof HTMLElementTagNameMap | "*"} T
 * @param {T} tag
 * @param {string} [rest] - of the selector
 * @param {ParentNode} [within]
 * @returns {(T extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[T] : HTMLElement)[]}
 */
function every(tag, rest = "", within = document) {
  return /** @type {any} */ ([...within.querySelectorAll(tag + rest)]);
}

/**
 * A field of a form, by its name. Of several, the first.
 * @param {HTMLFormElement} form
 * @param {string} name
 * @returns {HTMLInputElement | null}
 */
function fieldOf({ elements }, name) {
  const found = elements.namedItem(name);
  return /** @type {any} */ (found instanceof RadioNodeList ? found[0] : found);
}

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Partial<HTMLElementTagNameMap[T]>} properties
 */
function element(tag, properties) {
  return Object.assign(document.createElement(tag), properties);
}

/**
 * @param {string} path
 * @param {string} words
 */
function linkTo(path, words) {
  return element("a", { href: path, textContent: words });
}

// On a phone, the tabs and the pages are lines that scroll.
for (const here of every("nav", ":not(.chips) a[aria-current]"))
  here.scrollIntoView({ inline: "center", block: "nearest" });

const toast = element("p", { className: "toast", role: "status" });
document.body.append(toast);
let toasting = 0;

/** Says something in a corner of the page, to screen readers, too. @param {string} words */
function say(words) {
  clearTimeout(toasting);
  toast.textContent = words[0].toUpperCase() + words.slice(1);
  toasting = setTimeout(() => toast.replaceChildren(), 5000);
}

/** The search of everything, if the page has it. */
const [searchField] = every("input", "[name=q]", document.querySelector("header") ?? new DocumentFragment());

/** Whether a text is a key, or a part of one: it must be in no address. @param {string} text */
function isKey(text) {
  return /kh_\w{16}/.test(text);
}

function unanswered() {
  return navigator.onLine ? "The dashboard did not answer. Does it still run?" : "This device is offline.";
}

/**
 * What somebody chose on a page is in its address: it is there again when they come back, and for whom they send it to.
 * Browsers take few changes of an address in a second, so it is kept a moment later, or `now`.
 * @param {string} name
 */
function keptInAddress(name) {
  let timer = 0;
  /** @type {string | undefined} */
  let next;
  const now = () => {
    if (next === undefined) return;
    clearTimeout(timer);
    const url = new URL(location.href);
    if (next === "") url.searchParams.delete(name);
    else url.searchParams.set(name, next);
    next = undefined;
    history.replaceState(history.state, "", url);
  };
  const keep = (/** @type {string} */ value) => {
    // Kept short: the server refuses an address of 16 KiB.
    next = isKey(value) || encodeURIComponent(value.toWellFormed()).length > 4000 ? "" : value;
    clearTimeout(timer);
    timer = setTimeout(now, 300);
  };
  return { value: new URL(location.href).searchParams.get(name) ?? "", keep, now };
}

/*
 * The link in the terminal has its code after the #, which browsers send to nobody. It leaves the history at once. It
 * may be opened in a tab that is locked: that goes on to where it was.
 */
const [unlockForm] = every("form", "[data-unlock]");
const [code, page] = unlockForm ? ["code", "page"].map((name) => fieldOf(unlockForm, name)) : [];
if (code && page) {
  if (page.value === "/") page.value = sessionStorage.getItem("locked") ?? "/";
  sessionStorage.setItem("locked", page.value);
  const unlock = () => {
    if (location.hash.length <= 1) return;
    code.value = location.hash;
    history.replaceState(null, "", location.pathname + location.search);
    unlockForm.requestSubmit();
  };
  addEventListener("hashchange", unlock);
  unlock();
} else sessionStorage.removeItem("locked");

/* Times: in the reader's zone, by a finger too, and in UTC. What says how long ago something was grows older. */

/** Such as 2026-11-28 16:57:24 GMT+9: the form that days have everywhere. @param {HTMLTimeElement} time */
function inZone({ dateTime }) {
  return new Date(dateTime).toLocaleString("sv-SE", { dateStyle: "short", timeStyle: "long" });
}

const moments = every("time");
const ages = moments.filter((time) => time.textContent !== time.dateTime);
for (const time of moments) if (time.textContent === time.dateTime) time.textContent = inZone(time);

let dayAbove = "";
for (const time of every("time", "[data-day]")) {
  const [date, clock = "", ...zone] = inZone(time).split(" ");
  time.textContent = clock;
  const weekday = new Date(time.dateTime).toLocaleDateString("en", { weekday: "long" });
  const day = [weekday, date, ...zone].join(" ");
  const row = time.closest("tr");
  if (row === null || day === dayAbove) continue;
  dayAbove = day;
  const above = element("tr", {});
  above.append(element("th", { scope: "rowgroup", colSpan: row.cells.length, textContent: day }));
  row.before(above);
}

/** A moment as a field has it, such as 2026-11-28T16:57. @param {Date} date @param {number} [offset] - in minutes */
function asTyped(date, offset = 0) {
  return Number.isNaN(date.getTime()) ? "" : new Date(date.getTime() - offset * 60_000).toISOString().slice(0, 16);
}

// Fields take UTC, which is what the address has; people type in their own zone.
for (const field of every("input", "[type=datetime-local]")) {
  const given = field.value;
  const utc = new Date(`${given}Z`);
  const shown = asTyped(utc, utc.getTimezoneOffset());
  field.value = shown;
  for (const label of field.labels ?? []) label.textContent = (label.textContent ?? "").replace(" (UTC)", "");
  // When summer time ends, an hour comes twice. A field that nobody changed keeps its moment.
  const typed = () => (field.value === shown ? given : asTyped(new Date(field.value)));
  field.form?.addEventListener("formdata", ({ formData }) => formData.set(field.name, typed()));
}

document.addEventListener("mouseover", ({ target }) => {
  if (target instanceof HTMLTimeElement) target.title = `${inZone(target)}, ${target.dateTime}`;
});

document.addEventListener("click", ({ target }) => {
  if (target instanceof HTMLTimeElement && !target.closest("a")) say(`${inZone(target)}, ${target.dateTime}`);
});

const relative = new Intl.RelativeTimeFormat("en");
const unitsMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

// As `inWords` of core/words/ago.ts says it.
setInterval(() => {
  for (const time of ages) {
    const ms = Date.parse(time.dateTime) - Date.now();
    const size = Math.abs(ms);
    if (size < unitsMs.minute) continue;
    const unit = size < unitsMs.hour ? "minute" : size < 2 * unitsMs.day ? "hour" : "day";
    const words = relative.format(Math.trunc(ms / unitsMs[unit]), unit);
    if (time.textContent !== words) time.textContent = words;
  }
}, unitsMs.minute);

/* A page that waits for something loads itself again when it is there. It looks for ten minutes, then says so. */

const [awaiting] = every("*", "[data-awaits]");
if (awaiting) look(300);

/** @param {number} times */
function look(times) {
  setTimeout(async () => {
    if (await hasArrived()) location.reload();
    else if (times > 1) look(times - 1);
    else awaiting.textContent = awaiting.dataset.awaits ?? "";
  }, 2000);
}

async function hasArrived() {
  try {
    const answer = await fetch(location.href);
    return answer.status < 500 && !(await answer.text()).includes("data-awaits");
  } catch {
    return false;
  }
}
