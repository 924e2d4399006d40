// Draws each chart from the table that the page has anyway. The library is Chart.js, loaded before this module.

const { Chart } = window;
const ROLES = { plain: "--chart-1", stable: "--chart-1", candidate: "--chart-2", before: "--line-strong" };
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
const drawn = new Map();

function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function read(figure) {
  const heads = [...figure.querySelectorAll("thead th")].slice(1);
  const rows = [...figure.querySelectorAll("tbody tr")];
  return {
    labels: rows.map((row) => row.querySelector("time")?.textContent.trim().slice(-5) ?? row.querySelector("th").textContent.trim()),
    lines: heads.map((head, index) => ({
      title: head.textContent.trim(),
      role: head.dataset.line,
      values: rows.map((row) => {
        const text = row.querySelectorAll("td")[index].dataset.value;
        return text === "" ? null : Number(text);
      }),
    })),
  };
}

function datasets(lines) {
  return lines.map((line) => {
    const stroke = colour(ROLES[line.role] ?? "--chart-1");
    return {
      label: line.title,
      data: line.values,
      borderColor: stroke,
      backgroundColor: stroke,
      borderWidth: 2,
      borderDash: line.role === "before" ? [5, 4] : [],
      pointRadius: 0,
      pointHitRadius: 12,
      spanGaps: true,
    };
  });
}

function options(unit) {
  const text = colour("--text-quiet");
  const grid = colour("--line");
  return {
    animation: false,
    responsive: true,
    maintainAspectRatio: false,
    interaction: { mode: "index", intersect: false },
    plugins: {
      legend: { labels: { color: text, boxWidth: 24, boxHeight: 1 } },
      tooltip: { animation: still ? false : { duration: 80 }, callbacks: { label: (item) => ` ${item.dataset.label}: ${item.formattedValue} ${unit}` } },
    },
    scales: {
      x: { ticks: { color: text, maxRotation: 0, autoSkipPadding: 16 }, grid: { display: false }, border: { color: grid } },
      y: { beginAtZero: true, ticks: { color: text, callback: (value) => `${value} ${unit}` }, grid: { color: grid }, border: { display: false } },
    },
  };
}

function draw(figure) {
  const found = read(figure);
  const box = figure.querySelector(".canvas") ?? document.createElement("div");
  if (!box.parentElement) {
    box.className = "canvas";
    box.append(document.createElement("canvas"));
    figure.querySelector("figcaption").after(box);
  }
  // The table says the same to whoever doesn't see it.
  box.setAttribute("aria-hidden", "true");
  drawn.get(figure)?.destroy();
  drawn.set(
    figure,
    new Chart(box.firstElementChild, {
      type: figure.dataset.chart,
      data: { labels: found.labels, datasets: datasets(found.lines) },
      options: options(figure.dataset.unit),
    }),
  );
}

function drawAll() {
  for (const figure of drawn.keys()) if (!figure.isConnected) drawn.get(figure).destroy(), drawn.delete(figure);
  for (const figure of document.querySelectorAll("figure[data-chart]")) draw(figure);
}

document.addEventListener("htmx:afterSettle", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
