// The demo's page: shows what the demo process reports, and reads the session itself in one panel of its own.
import { readSession } from "./reader.js";

const byId = (id) => document.getElementById(id);
const copyOf = (template) => byId(template).content.firstElementChild.cloneNode(true);
const tints = new Map();
const tintOf = (gateway) => (tints.has(gateway) ? `var(--gw${tints.get(gateway)})` : "var(--soft)");
const gatewayCards = new Map();
const clientCards = new Map();
const KEEP_CHARACTERS = 30000;
const OWN_PANEL = "this browser";

async function act(path) {
  await fetch(`actions/${path}`, { method: "POST" }).catch(() => document.body.classList.add("ended"));
}

function gatewayCard(name) {
  if (!gatewayCards.has(name)) {
    const card = copyOf("gateway-card");
    tints.set(name, gatewayCards.size + 1);
    card.style.setProperty("--tint", tintOf(name));
    card.querySelector("h3").textContent = name;
    for (const button of card.querySelectorAll("button")) {
      button.onclick = () => act(`gateway/${name}/${button.dataset.signal}`);
    }
    byId("gateways").append(card);
    gatewayCards.set(name, card);
  }
  return gatewayCards.get(name);
}

function clientCard(name) {
  if (!clientCards.has(name)) {
    const card = copyOf("client-card");
    card.querySelector(".name").textContent = name;
    byId("clients").insertBefore(card, byId("log"));
    clientCards.set(name, { card, box: card.querySelector(".text"), runs: new Map() });
  }
  return clientCards.get(name);
}

function showClient(name, { gateway, rtt_ms, seq, cursor, state }) {
  const { card } = clientCard(name);
  const place = gateway ? gateway.replace(/-[0-9a-f]{16}$/, "") : state;
  const pill = card.querySelector(".gw");
  pill.textContent = state === "live" ? place : state;
  pill.style.setProperty("--tint", tintOf(place));
  card.querySelector(".rtt").textContent = rtt_ms == null ? "" : `RTT ${rtt_ms.toFixed(1)} ms`;
  card.querySelector(".seq").textContent = `seq ${seq}`;
  card.querySelector(".cursor").textContent = cursor ?? "";
}

function showText(name, { run, kind, text, end }) {
  const { box, runs } = clientCard(name);
  const atBottom = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  const key = `${run} ${kind}`;
  if (end) {
    const line = document.createElement("span");
    line.className = `end ${end.equal === null ? "" : end.equal ? "good" : "bad"}`;
    line.textContent = `${run}: ${end.reason}, ${end.bytes} bytes, ${end.equal === null ? "joined in the middle" : end.equal ? "digest equal" : "digest NOT EQUAL"}`;
    box.append(line);
    runs.clear();
  } else {
    let part = runs.get(key);
    if (!part) {
      part = document.createElement("span");
      part.className = kind;
      runs.set(key, part);
      box.append(part);
    }
    part.append(text);
  }
  while (box.childNodes.length > 2 && box.textContent.length > KEEP_CHARACTERS) box.firstChild.remove();
  if (atBottom) box.scrollTop = box.scrollHeight;
}

function showTally(tally) {
  for (const cell of document.querySelectorAll("#tally dd")) {
    const value = tally[cell.dataset.key];
    cell.textContent = cell.dataset.key === "digests" ? (value === null ? "–" : value ? "equal" : "differ") : value;
    if (cell.parentElement.classList.contains("must-be-zero")) cell.className = value === 0 ? "good" : "bad";
    if (cell.dataset.key === "digests" && value !== null) cell.className = value ? "good" : "bad";
  }
}

function showEvents(events) {
  const list = byId("events");
  for (const { at, what } of events) {
    const line = document.createElement("li");
    const time = document.createElement("time");
    time.textContent = `${at.toFixed(1)} s`;
    line.append(time, what);
    list.prepend(line);
  }
  while (list.childElementCount > 60) list.lastChild.remove();
}

function show(update) {
  for (const gateway of update.gateways ?? []) {
    const card = gatewayCard(gateway.name);
    for (const button of card.querySelectorAll("button")) button.disabled = gateway.pid === null;
    card.querySelector(".pid").textContent = gateway.pid === null ? "" : `pid ${gateway.pid}`;
    const pill = card.querySelector(".state");
    pill.textContent = gateway.state;
    pill.className = `pill state ${gateway.state}`;
  }
  for (const [name, client] of Object.entries(update.clients ?? {})) showClient(name, client);
  for (const [name, pieces] of Object.entries(update.texts ?? {})) for (const piece of pieces) showText(name, piece);
  if (update.tally) showTally(update.tally);
  if (update.events) showEvents(update.events);
  if (update.redis) {
    byId("redis").textContent = `Redis ${update.redis}`;
    byId("redis").className = `pill ${update.redis === "up" ? "up" : "down"}`;
  }
  if (update.slow !== undefined) {
    document.querySelector('[data-action="client/slow"]').ariaPressed = String(update.slow !== null);
    for (const [name, { card }] of clientCards) card.querySelector(".note").textContent = name === update.slow ? "(slow: 6 kB/s)" : "";
  }
}

for (const button of document.querySelectorAll("[data-action]")) button.onclick = () => act(button.dataset.action);

// What an earlier feed showed comes again with the next one's first look; only this browser's own panel goes on.
function startOver() {
  document.body.classList.remove("ended");
  byId("events").replaceChildren();
  for (const [name, { box, runs }] of clientCards) {
    if (name === OWN_PANEL) continue;
    box.replaceChildren();
    runs.clear();
  }
}

let own = null;
const feed = new EventSource("feed");
feed.onmessage = (event) => show(JSON.parse(event.data));
feed.onerror = () => document.body.classList.add("ended");
feed.addEventListener("hello", (event) => {
  const { session, relay_port } = JSON.parse(event.data);
  if (own !== null && own !== session) location.reload(); // another demo took the same port
  startOver();
  if (own !== null) return;
  own = session;
  readSession({
    url: `ws://${location.hostname}:${relay_port}/v1/sessions/${session}/ws`,
    onState: (state) => showClient(OWN_PANEL, state),
    onText: (piece) => showText(OWN_PANEL, piece),
  });
});
