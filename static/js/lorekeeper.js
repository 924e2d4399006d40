// What pages gain from scripts; each works without. No handler is written into a page, so the content policy can be strict.

const announcer = document.getElementById("announcer");
const dialog = document.getElementById("dialog");

function announce(text) {
  announcer.textContent = "";
  requestAnimationFrame(() => (announcer.textContent = text));
}

// Times are shown in the reader's zone: the server asks once which it is.
function tellZone() {
  if (!document.body.hasAttribute("data-zone-unknown")) return;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone || zone === "UTC") return;
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `lorekeeper_zone=${zone}; path=/; max-age=31536000; samesite=lax${secure}`;
}

// Buttons that need scripts are hidden until there are some.
function reveal(root) {
  for (const element of root.querySelectorAll("[data-script], [data-copy] > button")) element.hidden = false;
}

function copy(button) {
  const text = button.parentElement.querySelector("code").textContent;
  navigator.clipboard.writeText(text).then(() => announce(button.dataset.done || "✓"));
  const said = button.textContent;
  button.textContent = "✓";
  setTimeout(() => (button.textContent = said), 1500);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy] > button");
  if (button) copy(button);
  if (event.target.closest("[data-close]") && dialog.contains(event.target)) {
    event.preventDefault();
    dialog.close();
  }
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

// A confirmation opens over the page that asked for it.
document.addEventListener("htmx:afterSwap", (event) => {
  reveal(event.target);
  if (event.target === dialog && dialog.childElementCount && !dialog.open) dialog.showModal();
});

dialog?.addEventListener("close", () => dialog.replaceChildren());

tellZone();
reveal(document);
