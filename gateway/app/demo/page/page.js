// The demo's page: shows what the demo process reports. The panel of this browser itself is own.js.
import { OwnPanel } from "./own.js";
import { showPanels } from "./panels.js";

const byId = (id) => document.getElementById(id);
const copyOf = (template) => byId(template).content.firstElementChild.cloneNode(true);
const tints = new Map();
const tintOf = (gateway) => (tints.has(gateway) ? `var(--gw${tints.get(gateway)})` : "var(--soft)");
const gatewayCards = new Map();
const clientCards = new Map();
const KEEP_CHARACTERS = 30000;

async function act(path, body) {
  await fetch(`actions/${path}`, { method: "POST", body: body && JSON.stringify(body) }).catch(() => document.body.classList.add("ended"));
}

function gatewayCard(name) {
  if (!gatewayCards.has(name)) {
    const card = copyOf("gateway-card");
    tints.set(name, Number(name.split("-").at(-1)));
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
    byId("clients").append(card);
    clientCards.set(name, { card, box: card.querySelector(".text"), runs: new Map(), asks: new Map() });
    for (const button of card.querySelectorAll("[data-do]")) button.onclick = () => person(name, button.dataset.do);
    const form = card.querySelector("form");
    form.onsubmit = (event) => {
      event.preventDefault();
      const text = form.text.value.trim();
      if (text) person(name, "say", { text });
      form.reset();
    };
  }
  return clientCards.get(name);
}

// What a person does at a reader of the demo process.
function person(name, what, body) {
  act(`reader/${name}/${what}`, body);
}

function showClient(name, { gateway, rtt_ms, seq, cursor, state, paused, media }) {
  const { card } = clientCard(name);
  const place = gateway ? gateway.replace(/-[0-9a-f]{16}$/, "") : state;
  const pill = card.querySelector(".gw");
  pill.textContent = state === "live" ? place : state;
  pill.style.setProperty("--tint", tintOf(place));
  card.querySelector(".rtt").textContent = rtt_ms == null ? "" : `RTT ${rtt_ms.toFixed(1)} ms`;
  card.querySelector(".seq").textContent = `seq ${seq}`;
  card.querySelector(".media").textContent = media.audio + media.video === 0 ? "" : `media ${media.audio + media.video}, left out ${media.dropped_audio + media.dropped_video}`;
  card.querySelector(".cursor").textContent = cursor ?? "";
  card.classList.toggle("paused", Boolean(paused));
  card.querySelector('[data-do="pause"]').textContent = paused ? "resume" : "pause";
}

function line(className, ...content) {
  const made = document.createElement("span");
  made.className = className;
  made.append(...content);
  return made;
}

const endNote = ({ reason, equal }) => {
  if (reason !== "complete") return equal === null ? "ended early" : equal ? "equal so far" : "NOT the source's beginning";
  return equal === null ? "joined in the middle" : equal ? "digest equal" : "digest NOT EQUAL";
};

const shows = {
  end({ box, runs }, { run, end }) {
    const good = end.equal === null ? "" : end.equal ? "good" : "bad";
    box.append(line(`end ${good}`, `${run}: ${end.reason}, ${end.bytes} bytes, ${endNote(end)}`));
    runs.clear();
  },
  cut({ box }, { run, silent_ms, at }) {
    box.append(line("cut", `${run} interrupted here, at byte ${at}: silent after ${silent_ms} ms`));
  },
  thought({ box }, { duration_ms }) {
    box.append(line("thought", `thought for ${(duration_ms / 1000).toFixed(1)} s`));
  },
  echo({ box }, { client, text }) {
    box.append(line("said other", `${client}: ${text}`));
  },
  said({ box }, { text }) {
    box.append(line("said", text));
  },
  ask({ box, asks, card }, { ask, text, options }) {
    if (asks.has(ask)) return;
    const shown = line("ask", text);
    for (const value of options ?? []) {
      const button = document.createElement("button");
      button.textContent = value;
      button.onclick = () => person(card.querySelector(".name").textContent, "answer", { ask, value });
      shown.append(button);
    }
    asks.set(ask, shown);
    box.append(shown);
  },
  resolved({ box, asks }, { ask, status, value, client }) {
    const shown = asks.get(ask) ?? box.appendChild(line("ask", ask));
    for (const button of shown.querySelectorAll("button")) button.remove();
    shown.append(line("outcome", value === null || value === undefined ? status : `${client}: ${value}`));
  },
};

function showPiece(name, piece) {
  const client = clientCard(name);
  const { box, runs } = client;
  const atBottom = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  if (shows[piece.kind]) shows[piece.kind](client, piece);
  else {
    const key = `${piece.run} ${piece.kind} ${piece.block ?? ""}`;
    let part = runs.get(key);
    if (!part || (piece.kind === "delta" && part !== box.lastChild)) {
      part = line(piece.kind);
      if (piece.kind === "code") part.dataset.language = piece.language ?? "code";
      runs.set(key, part);
      box.append(part);
    }
    part.append(piece.text);
  }
  while (box.childNodes.length > 2 && box.textContent.length > KEEP_CHARACTERS) box.firstChild.remove();
  if (atBottom) box.scrollTop = box.scrollHeight;
}

function showFigures({ run, state, tokens, tokens_per_second, first_token_seconds, longest_gap_seconds }) {
  const ms = (seconds) => (seconds === null ? "–" : `${Math.round(seconds * 1000)} ms`);
  const figures = { run: `${run}, ${state}`, tokens, rate: tokens_per_second ?? "–", first: ms(first_token_seconds), gap: ms(longest_gap_seconds) };
  for (const [name, value] of Object.entries(figures)) document.querySelector(`[data-figure="${name}"]`).textContent = value;
}

function showInbox(items) {
  byId("inbox").replaceChildren(...items.map(({ kind, who, what }) => {
    const item = document.createElement("li");
    item.append(line("pill", kind), ` ${who}: ${what}`);
    return item;
  }));
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
  for (const { at, what, isOwn = false } of events) {
    const line = document.createElement("li");
    const time = document.createElement("time");
    time.textContent = isOwn ? "" : `${at.toFixed(1)} s`;
    line.classList.toggle("own", isOwn);
    line.append(time, what);
    list.prepend(line);
  }
  while (list.childElementCount > 60) list.lastChild.remove();
}

function showGateways(gateways) {
  const names = new Set(gateways.map(({ name }) => name));
  for (const [name, card] of gatewayCards) {
    if (names.has(name)) continue;
    card.remove();
    gatewayCards.delete(name);
  }
  for (const gateway of gateways) {
    const card = gatewayCard(gateway.name);
    for (const button of card.querySelectorAll("button")) button.disabled = gateway.pid === null;
    card.querySelector(".pid").textContent = gateway.pid === null ? "" : `pid ${gateway.pid}`;
    const pill = card.querySelector(".state");
    pill.textContent = gateway.state;
    pill.className = `pill state ${gateway.state}`;
  }
}

function show(update) {
  if (update.gateways) showGateways(update.gateways);
  showPanels(update);
  if (update.media) own?.call.heard(update.media);
  for (const [name, client] of Object.entries(update.clients ?? {})) showClient(name, client);
  for (const [name, pieces] of Object.entries(update.texts ?? {})) for (const piece of pieces) showPiece(name, piece);
  if (update.tally) showTally(update.tally);
  if (update.events) showEvents(update.events);
  if (update.figures?.run) showFigures(update.figures);
  if (update.inbox) showInbox(update.inbox);
  if (update.browsers && own) showOwnGateway(own.showGateway(update.browsers));
  if (update.segment && document.activeElement !== byId("segment")) byId("segment").value = update.segment;
  if (update.redis) {
    byId("redis").textContent = `Redis ${update.redis}`;
    byId("redis").className = `pill ${update.redis === "up" ? "up" : "down"}`;
  }
  if (update.slow !== undefined) {
    document.querySelector('[data-action="client/slow"]').ariaPressed = String(update.slow !== null);
    for (const [name, { card }] of clientCards) card.querySelector(".note").textContent = name === update.slow ? "(slow: 6 kB/s)" : "";
  }
}

function showOwnGateway(gateway) {
  const pill = document.querySelector("#own .gw");
  pill.textContent = gateway;
  pill.style.setProperty("--tint", tintOf(gateway));
}

for (const button of document.querySelectorAll("[data-action]")) button.onclick = () => act(button.dataset.action);
byId("try-canary").onclick = () => act(`routes/canary/${byId("share").value}`);
byId("segment").onchange = ({ target }) => act(`segment/${target.value}`).then(() => target.blur());

// What an earlier feed showed comes again with the next one's first look; only this browser's own panel goes on.
function startOver() {
  document.body.classList.remove("ended");
  byId("events").replaceChildren();
  for (const { box, runs, asks } of clientCards.values()) {
    box.replaceChildren();
    runs.clear();
    asks.clear();
  }
}

let own = null;
let shownSession = null;
const feed = new EventSource("feed");
feed.onmessage = (event) => show(JSON.parse(event.data));
feed.onerror = () => document.body.classList.add("ended");
feed.addEventListener("hello", (event) => {
  const { session, relay_port } = JSON.parse(event.data);
  if (own !== null && shownSession !== session) location.reload(); // another demo took the same port
  startOver();
  if (own !== null) return;
  shownSession = session;
  const url = `http://${location.hostname}:${relay_port}`;
  own = new OwnPanel(byId("own"), { url, session, act, note: (what) => showEvents([{ what, isOwn: true }]) });
  window.demo = own; // for whoever looks into it by the browser's tools, and for its tests
});
