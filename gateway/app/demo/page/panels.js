// What an operator sees and does: the table of gateways, roll, scale, storm, and the route table with its canary.
const byId = (id) => document.getElementById(id);
const number = (value) => (value == null ? "–" : value.toLocaleString("en"));
const ms = (value) => (value == null ? "–" : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`);
const shortName = (gateway) => gateway.replace(/-[0-9a-f]{16}$/, "");
const DEGRADES = { audio_only: "sound before pictures", thin: "sound and pictures alike" };

function made(tag, text, className = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

function showRows(rows) {
  byId("gateway-rows").replaceChildren(...rows.map((row) => {
    const line = document.createElement("tr");
    const name = made("th", shortName(row.gateway));
    name.scope = "row";
    const state = document.createElement("td");
    state.append(made("span", row.state, `pill ${row.state === "serving" ? "up" : "draining"}`));
    const cells = [number(row.connections), number(row.open_runs), ms(row.rtt_p50_ms), number(row.behind_messages), `${number(Math.round(row.unsent_bytes / 1024))} KiB`];
    line.append(name, state, ...cells.map((cell) => made("td", cell)), made("td", row.routes, "version"));
    return line;
  }));
}

// Bars of a second each, what was tried behind what was let in; the same as words for who does not see them.
function showBars({ attempts_by_second: attempts, admitted_by_second: admitted }) {
  const most = Math.max(1, ...attempts, ...admitted);
  byId("storm-bars").replaceChildren(...attempts.map((tried, second) => {
    const bar = made("span", "");
    bar.style.setProperty("--tried", tried / most);
    bar.style.setProperty("--let-in", (admitted[second] ?? 0) / most);
    bar.title = `second ${second + 1}: ${tried} attempts, ${admitted[second] ?? 0} admitted`;
    return bar;
  }));
  byId("storm-seconds").textContent = attempts.length === 0 ? "–" : `${attempts.join(", ")} (admitted ${admitted.join(", ")})`;
}

function showStorm(storm) {
  byId("storm").hidden = storm === null;
  if (storm === null) return;
  byId("storm").dataset.phase = storm.running ? "running" : storm.phase;
  byId("storm-phase").textContent = storm.phase;
  const lost = byId("storm-lost");
  lost.textContent = storm.lost ?? "–";
  lost.className = storm.lost === null ? "" : storm.lost === 0 ? "good" : "bad";
  byId("storm-live").textContent = `${number(storm.live)} of ${number(storm.clients)}`;
  byId("storm-returned").textContent = number(storm.returned);
  byId("storm-time").textContent = storm.seconds === null ? "–" : `${storm.seconds.toFixed(1)} s`;
  showBars(storm);
}

function tableRow({ type, lane, channel, deadline_seconds, degrade }, isChanged) {
  const line = document.createElement("tr");
  line.classList.toggle("changed", isChanged);
  const name = made("th", type);
  name.scope = "row";
  line.append(name, ...[lane, channel, deadline_seconds, degrade].map((cell) => made("td", String(cell))));
  return line;
}

function showRoutes({ in_force: inForce, canary, tables, sessions }) {
  if (!tables) return;
  const isPromoted = canary?.verdict === "promoted";
  const isOnTrial = canary !== null && canary.verdict === null;
  const shown = isPromoted ? tables[1] : tables[0];
  byId("routes").dataset.inForce = inForce;
  byId("in-force").textContent = shown.version;
  const verdict = isOnTrial ? `on trial for ${Math.round(canary.share * 100)} % of the sessions` : canary?.verdict?.replace("_", " ");
  byId("canary-state").textContent = canary === null ? "none" : `${canary.version}, ${verdict}`;
  byId("route-rows").replaceChildren(...shown.rows.map((row) => tableRow(row, false)));
  if (isOnTrial) {
    const media = tables[1].rows.find((row) => row.type === "media");
    byId("route-rows").append(tableRow({ ...media, type: `media in ${canary.version}` }, true));
  }
  for (const name of ["promote", "rollback"]) document.querySelector(`[data-action="routes/${name}"]`).disabled = !isOnTrial;
  byId("versions").replaceChildren(...Object.entries(sessions).map(([session, version]) => {
    const item = made("li", "");
    item.append(made("code", session), made("span", version, `pill ${version === canary?.version ? "starting" : ""}`));
    item.title = DEGRADES[tables.find((table) => table.version === version)?.rows.find((row) => row.type === "media")?.degrade] ?? "";
    return item;
  }));
}

// What was said last; an update has only what is new.
const known = { operation: null, can_grow: false, can_shrink: false, crowd: 0, storm: null };

function showOperations(update) {
  for (const name of Object.keys(known)) if (update[name] !== undefined) known[name] = update[name];
  const { operation, can_grow: canGrow, can_shrink: canShrink, crowd, storm } = known;
  byId("operation").textContent = operation ?? "";
  const isBusy = operation !== null || storm?.running === true;
  const can = { roll: true, "scale-out": canGrow, "scale-in": canShrink, storm: crowd !== null, "send-home": crowd > 0 };
  for (const [name, isPossible] of Object.entries(can)) document.querySelector(`[data-action="cluster/${name}"]`).disabled = isBusy || !isPossible;
  if (crowd === null) document.querySelector('[data-action="cluster/storm"]').title = "The simulated clients are not installed";
}

export function showPanels(update) {
  if (update.cluster) showRows(update.cluster);
  if (update.storm !== undefined) showStorm(update.storm);
  if (update.routes) showRoutes(update.routes);
  showOperations(update);
}
