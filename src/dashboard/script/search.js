// @ts-check

/* The keys / and Ctrl-K, and what the search in the header offers. */

// The key / goes to the filter and, from the empty filter, on to the search. Ctrl-K goes to the search from anywhere.
document.addEventListener("keydown", (event) => {
  const { target, key, ctrlKey, metaKey, altKey } = event;
  if (!(target instanceof Element)) return;
  const isInEmptyFilter = target.matches("[data-filter]") && /** @type {HTMLInputElement} */ (target).value === "";
  const isTyping = target.closest("input, textarea, select") !== null && !isInEmptyFilter;
  const isControl = ctrlKey || metaKey;
  const isOffered = key === "k" && isControl;
  if (altKey || !(isOffered || (key === "/" && !isTyping && !isControl))) return;
  const [filter] = isInEmptyFilter || isOffered ? [] : every("input", "[data-filter]");
  const field = filter ?? searchField;
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
  if (isOffered) void offer();
});

/*
 * What the search offers below its field: where people go most often and, while they type, the best hits. The arrows
 * choose one. Enter goes there; with none chosen, it sends the form. One question is asked at a time.
 */

const offers = element("div", { id: "offers", role: "listbox", ariaLabel: "Pages to go to" });
const offersSaid = element("p", { className: "quiet", role: "status" });
const offersBox = element("div", { className: "offers", hidden: true });

if (searchField) {
  offersBox.append(offers, offersSaid);
  searchField.after(offersBox);
  Object.assign(searchField, { role: "combobox", ariaAutoComplete: "list" });
  // On a phone it has no room for more.
  if (searchField.clientWidth > 150) searchField.placeholder += " (Ctrl-K)";
  searchField.setAttribute("aria-controls", offers.id);
  searchField.setAttribute("aria-keyshortcuts", "/ Control+K");
  stopOffering();
  searchField.addEventListener("input", offer);
  searchField.addEventListener("blur", stopOffering);
  // The field keeps the focus, so a click on what is offered comes.
  offersBox.addEventListener("mousedown", (event) => event.preventDefault());
  searchField.addEventListener("keydown", (event) => {
    const all = every("a", "", offers);
    const at = all.findIndex((one) => one.ariaSelected === "true");
    if (event.key === "ArrowDown" && offersBox.hidden) void offer();
    else if (event.key === "ArrowDown") chooseOffer(all[at + 1]);
    else if (event.key === "ArrowUp") chooseOffer(at === -1 ? all.at(-1) : all[at - 1]);
    else if (event.key === "Enter" && at >= 0) all[at].click();
    else if (event.key === "Escape" && !offersBox.hidden) stopOffering();
    else return;
    event.preventDefault();
  });
}

/** @typedef {{ offers?: { name: string, about: string, to: string }[], said?: string, error?: string }} Offered */

async function offer() {
  if (offers.ariaBusy) return;
  offers.ariaBusy = "true";
  let q;
  /** @type {Offered} */
  let answer;
  do {
    q = searchField.value;
    answer = await offersFor(q);
  } while (q !== searchField.value);
  offers.ariaBusy = null;
  if (document.activeElement !== searchField) return;
  const { offers: found = [], said, error } = answer;
  const options = found.map(({ name, about, to }, at) => {
    const option = element("a", { id: `offer-${at}`, role: "option", ariaSelected: "false", href: to, tabIndex: -1 });
    option.append(element("bdi", { textContent: name }), " ", element("small", { textContent: about }));
    return option;
  });
  offers.replaceChildren(...options);
  offers.hidden = found.length === 0;
  offersSaid.textContent = error ?? said ?? "";
  chooseOffer();
  offersBox.hidden = false;
  searchField.ariaExpanded = "true";
}

/**
 * @param {string} q
 * @returns {Promise<Offered>}
 */
async function offersFor(q) {
  if (isKey(q)) return { said: "A key: press Enter to be told whose it is." };
  // One letter more than a name may have is enough for the refusal. The server would refuse a far longer address.
  const asked = new URLSearchParams({ q: q.slice(0, 1025), page: location.pathname });
  const answer = fetch(`/find/offers?${asked}`, { headers: { accept: "application/json" } });
  return answer.then((found) => found.json()).catch(() => ({ error: unanswered() }));
}

/** @param {HTMLElement} [option] - none, if it is left out */
function chooseOffer(option) {
  for (const one of offers.children) one.ariaSelected = String(one === option);
  if (option) searchField.setAttribute("aria-activedescendant", option.id);
  else searchField.removeAttribute("aria-activedescendant");
  option?.scrollIntoView({ block: "nearest" });
}

function stopOffering() {
  offersBox.hidden = true;
  searchField.ariaExpanded = "false";
  chooseOffer();
}
