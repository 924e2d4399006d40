// Single keys for lists and reviews. They follow links that are on the page, so that nothing is lost without them.
// Somebody who speaks to the computer, or types by accident, can turn them off.

const STORED = "lorekeeper.keys";
const box = document.querySelector("[data-keys-on]");

function isOn() {
  return localStorage.getItem(STORED) !== "off";
}

if (box) {
  box.checked = isOn();
  box.addEventListener("change", () => localStorage.setItem(STORED, box.checked ? "on" : "off"));
}

function step(by) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return false;
  const here = rows.indexOf(document.activeElement);
  const next = here < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(here + by, 0), rows.length - 1);
  rows[next].focus();
  return true;
}

function isTyping(target) {
  return target.isContentEditable || target.matches("input, select, textarea") || target.closest("dialog");
}

let opener = null;

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
  if (!isOn() || isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if ((event.key === "j" && step(1)) || (event.key === "k" && step(-1))) {
    event.preventDefault();
    return;
  }
  for (const link of document.querySelectorAll("[data-key]")) {
    if (!link.dataset.key.split(" ").includes(event.key)) continue;
    event.preventDefault();
    link.focus();
    opener = link;
    link.click();
    return;
  }
});

// Who closes the question is back at the button that asked it.
document.getElementById("dialog")?.addEventListener("close", () => opener?.focus());
