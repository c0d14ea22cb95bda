// What the pages do: send forms to the API, show what changes as it changes, follow a log.
"use strict";

const OWN = { "X-Tradewind-Page": "1" };
const said = document.getElementById("said");
const live = document.getElementById("live");

function say(text) {
  said.textContent = text;
  window.clearTimeout(say.later);
  say.later = window.setTimeout(() => { said.textContent = ""; }, 8000);
}

async function post(address, body, type, method) {
  const key = window.crypto.randomUUID ? window.crypto.randomUUID() : String(Math.random()) + Date.now();
  const headers = { ...OWN, "Idempotency-Key": key };
  if (body !== undefined) headers["Content-Type"] = type;
  const answer = await fetch(address, { method: method || "POST", headers, body });
  const found = await answer.json();
  if (found.error && found.error.code === "price_moved" && found.error.data) throw new Error("This price holds no more. A fresh quote is open.");
  if (!answer.ok) throw new Error(found.error ? found.error.message : answer.statusText);
  return found;
}

async function refresh() {
  const answer = await fetch(window.location.href, { headers: { Accept: "text/html" } });
  if (answer.redirected) { window.location.assign("/login"); return; }
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelectorAll(".live");
  document.querySelectorAll(".live").forEach((part, number) => {
    if (!fresh[number] || part.innerHTML === fresh[number].innerHTML) return;
    const focused = document.activeElement && part.contains(document.activeElement) ? document.activeElement.dataset.post : undefined;
    part.replaceChildren(...fresh[number].childNodes);
    if (focused) { const again = part.querySelector(`[data-post="${CSS.escape(focused)}"]`); if (again) again.focus(); }
  });
  document.querySelectorAll("[data-chart]").forEach(draw);
}

async function draw(box) {
  if (box.dataset.busy || Date.now() - Number(box.dataset.drawn || 0) < 1000 * Number(box.dataset.every)) return;
  box.dataset.busy = "1";
  try {
    const answer = await fetch(box.dataset.chart, { headers: { Accept: "text/html" } });
    if (answer.ok && !answer.redirected) {
      const text = await answer.text();
      if (box.shown !== text) { box.innerHTML = text; box.shown = text; }
    }
  } catch (problem) { /* the server is away: tried again with the next event */ }
  box.dataset.drawn = String(Date.now());
  delete box.dataset.busy;
}

let waiting = false;
function soon() {
  if (waiting) return;
  waiting = true;
  window.setTimeout(async () => { waiting = false; try { await refresh(); } catch (problem) { /* tried again with the next event */ } }, 400);
}

async function listen() {
  let last = live.dataset.last;
  for (;;) {
    try {
      const headers = { ...OWN, Accept: "text/event-stream", "Last-Event-ID": String(last) };
      const answer = await fetch("/v1/events", { headers });
      if (answer.status === 401) { window.location.assign("/login"); return; }
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        rest += value;
        const parts = rest.split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const number = /^id: (\d+)$/m.exec(part);
          if (number) { last = Number(number[1]); soon(); }
        }
      }
    } catch (problem) { /* the server is away: try again */ }
    await new Promise((done) => window.setTimeout(done, 1500));
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-post]");
  if (!button || (button.dataset.sure && !window.confirm(button.dataset.sure))) return;
  button.disabled = true;
  try {
    const found = await post(button.dataset.post, button.dataset.body, "application/json", button.dataset.method);
    say(found.price_usd !== undefined && found.payment_rule ? `Agreed: ${Number(found.price_usd || 0).toFixed(2)} USD` : `Done: ${found.status || "ok"}`);
  } catch (problem) { say(problem.message); }
  button.disabled = false;
  soon();
});

function told(found) {
  const clock = (at) => at === null ? "unknown" : new Date(1000 * at).toISOString().slice(0, 19).replace("T", " ");
  const sites = Object.entries((found.place || {}).workers || {}).map(([site, count]) => `${count} at ${site}`).join(", ");
  const price = found.price_usd === null ? "" : `, ${Number(found.price_usd).toFixed(2)} USD`;
  const when = `starts ${clock(found.start.p50_s)}, finishes ${clock(found.finish.p50_s)} UTC`;
  return [`${sites || "nowhere yet"}${price}; ${when}`, ...found.lines].join("\n");
}

document.addEventListener("submit", async (event) => {
  const form = event.target, to = (event.submitter && event.submitter.dataset.to) || form.dataset.post || form.dataset.json;
  if (!to) return;
  event.preventDefault();
  const values = Object.fromEntries(new FormData(form)), output = form.querySelector("output");
  if (output) output.textContent = "";
  if (event.submitter) event.submitter.disabled = true;
  try {
    if (form.id === "token") {
      const scopes = values.scopes ? [values.scopes] : [], valid = values.valid_s ? Number(values.valid_s) : null;
      const found = await post(to, JSON.stringify({ ...values, scopes, valid_s: valid }), "application/json");
      output.textContent = `The new token, shown only now: ${found.secret}`;
    } else if (form.dataset.json) {
      await post(to, values.json, "application/json");
      output.textContent = "Done.";
    } else {
      const address = values.tenant ? `${to}${to.includes("?") ? "&" : "?"}tenant=${encodeURIComponent(values.tenant)}` : to;
      const found = await post(address, values.yaml, "application/yaml");
      if (found.lines) output.textContent = told(found);
      else say(found.job && typeof found.job === "string" ? `Quote ${found.status} for ${found.job}` : `Submitted: ${found.id}`);
    }
  } catch (problem) { if (output) output.textContent = problem.message; else say(problem.message); }
  if (event.submitter) event.submitter.disabled = false;
  soon();
});

async function follow(box) {
  let offset = 0;
  for (;;) {
    try {
      const answer = await fetch(`${box.dataset.log}?offset=${offset}`, { headers: OWN });
      if (answer.ok) {
        const bytes = new Uint8Array(await answer.arrayBuffer());
        if (bytes.length) {
          const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
          offset += bytes.length;
          box.append(new TextDecoder().decode(bytes));
          if (atEnd) box.scrollTop = box.scrollHeight;
        }
      }
    } catch (problem) { /* the server is away: try again */ }
    await new Promise((done) => window.setTimeout(done, 1000));
  }
}

if (live) listen();
if (live) window.setInterval(() => document.querySelectorAll("[data-poll]").forEach(draw), 2000);
document.querySelectorAll("[data-chart]").forEach(draw);
const log = document.getElementById("log");
if (log) follow(log);

async function forecast(box) {
  const clock = (at) => at === null ? "unknown" : new Date(1000 * at).toISOString().slice(0, 19).replace("T", " ");
  for (;;) {
    try {
      const answer = await fetch(box.dataset.eta, { headers: OWN });
      if (answer.ok) {
        const found = await answer.json();
        const kept = found.kept.given ? ` Of ${found.kept.given} earlier forecasts ${Math.round(100 * found.kept.by_p90)}% were kept.` : "";
        const known = found.calibration;
        const error = known && known.error_s !== null ? ` ± ${known.error_s.toPrecision(2)}` : "";
        const own = known && known.iterations ? ` An iteration takes ${known.measured_s.toPrecision(3)}${error} s (${known.iterations} measured), ${known.predicted_s.toPrecision(3)} s predicted.` : "";
        box.textContent = `Starts ${clock(found.start.p50_s)}, finishes ${clock(found.finish.p50_s)}; with 90% by ${clock(found.finish.p90_s)} (UTC).${own}${kept}`;
      }
    } catch (problem) { /* the server is away: try again */ }
    await new Promise((done) => window.setTimeout(done, 10000));
  }
}

const eta = document.getElementById("eta");
if (eta) forecast(eta);
