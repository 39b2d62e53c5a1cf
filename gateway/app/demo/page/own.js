// The panel of this browser: a session of the JavaScript SDK, its texts by the SDK's render helper, its place in sessionStorage.
import { Call } from "./call.js";
import { connect, renderText, sessionStorageStore } from "./relayrouter.js";

const RUNS_SHOWN = 14; // no more than the session keeps the texts of
const LINES_SHOWN = 80;
const NEAR_END_PX = 40;
// A text may still be fetched again over a slow line.
const SETTLES_MS = 20_000;
const SETTLES_LOOK_MS = 50;
const LOOK_MS = 1000;
const TIMING = { backoffBase: 500, climbAfter: 8_000, connectTimeout: 6_000 };
const CHANNEL_NAMES = { websocket: "WebSocket", sse: "SSE", poll: "long poll" };

function line(className, ...content) {
  const made = document.createElement("span");
  made.className = className;
  made.append(...content);
  return made;
}

// One run on the screen. Its two texts are written by the SDK alone.
class ShownRun {
  constructor(session, run, onWrite) {
    this.run = run;
    this.onWrite = onWrite;
    this.element = document.createElement("article");
    this.element.dataset.run = run;
    this.thinking = line("thinking");
    this.text = line("delta");
    this.foot = line("foot");
    this.element.append(this.thinking, this.text, this.foot);
    this.stops = [
      renderText(session, run, this.thinking, { track: "thinking", onWrite }),
      renderText(session, run, this.text, { onWrite }),
    ];
    this.isEnded = false;
    this.digest = null;
  }

  leave() {
    for (const stop of this.stops.splice(0)) stop();
  }

  // The verdict is about what is on the screen, not about what the session has.
  async end({ reason, bytes }) {
    this.isEnded = true;
    const answer = await fetch(`source/${encodeURIComponent(this.run)}`).catch(() => null);
    const source = answer?.ok ? (await answer.json()).text : null;
    const isWhole = reason === "complete";
    const isEqual = () => source !== null && (isWhole ? this.text.textContent === source : source.startsWith(this.text.textContent));
    const isSettled = () => isEqual() && (!isWhole || this.digest !== null);
    const until = performance.now() + SETTLES_MS;
    while (!isSettled() && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, SETTLES_LOOK_MS));
    const isGood = isEqual() && (!isWhole || this.digest?.ok !== false);
    const screen = !isEqual() ? "screen differs from source" : isWhole ? "screen equals source" : "equal so far";
    const digest = !isWhole || this.digest === null ? "" : `, digest ${this.digest.ok ? "equal" : "NOT EQUAL"}${this.digest.healed ? " (healed)" : ""}`;
    this.foot.replaceChildren(line(`end ${isGood ? "good" : "bad"}`, `${this.run}: ${reason}, ${bytes} bytes, ${screen}${digest}`));
    this.onWrite();
    Object.assign(this.element.dataset, { reason, equal: isEqual(), digest: this.digest?.ok ?? "none" });
  }
}

export class OwnPanel {
  // `act` tells the demo process; `note` adds a line to what happened.
  constructor(root, { url, session, act, note }) {
    this.root = root;
    this.options = { url, session };
    this.act = act;
    this.note = note;
    this.box = root.querySelector(".text");
    this.openAsks = root.querySelector(".asks");
    this.form = root.querySelector("form");
    this.channel = root.querySelector("#channel");
    this.network = root.querySelector("#network");
    this.blocks = root.querySelector("#blocks");
    this.call = new Call(root.querySelector(".call"));
    this.runs = new Map();
    this.isPaused = false;
    this.isSwitching = false;
    this.isFollowing = true;
    this.choice = `relayrouter-demo:${session}`;
    const { channel = "auto", network = 0, blocks = false } = JSON.parse(sessionStorage.getItem(this.choice) ?? "{}");
    Object.assign(this.channel, { value: channel });
    Object.assign(this.network, { value: network });
    Object.assign(this.blocks, { checked: blocks });
    this.isNetworkTold = Number(network) === 0 && !blocks;
    this.listen();
    this.open();
    setInterval(() => this.showPlace(), LOOK_MS);
  }

  // ---- the session -------------------------------------------------------------------------------------------------

  open() {
    const options = { ...this.options, from: "start", channel: this.channel.value, store: sessionStorageStore(), rhythm: true, timing: TIMING };
    const session = connect(this.call.join(options));
    this.session = session;
    let isContinued = null;
    session.on("state", (event) => {
      isContinued ??= session.cursor !== null;
      if (event.state === "live" && isContinued) this.append(line("place", `continued at ${session.cursor}`));
      if (event.state === "live") isContinued = false;
      this.showState(event);
      this.tellNetwork();
    });
    session.on("run", ({ run, state, reason, payload }) => {
      const shown = this.shown(run);
      if (state === "ended") shown.end({ reason, bytes: payload.bytes });
    });
    for (const track of ["text", "thinking"]) session.on(track, ({ run }) => this.shown(run));
    session.on("digest", (digest) => {
      const shown = this.runs.get(digest.run);
      if (shown) shown.digest = digest;
    });
    session.on("message", (message) => this.onMessage(message));
    session.on("ask", (ask) => this.showAsk(ask));
    session.on("ask_resolved", ({ ask, status, value, payload }) => this.resolve(ask, value == null ? status : `${payload.client}: ${value}`));
    session.on("gap", ({ first, last, reason }) => this.append(line("gap", `messages ${first} to ${last} cannot be shown: ${reason}`)));
    session.on("rhythm", ({ tokens_per_s, gap_ms }) => {
      document.getElementById("rhythm").textContent = `${tokens_per_s} / s, ${gap_ms} ms apart`;
    });
    session.on("error", ({ message }) => this.note(`this browser: ${message}`));
  }

  // Another way to the gateway by choice: the same place and client id, a new connection.
  async reopen() {
    if (this.isSwitching) return;
    this.isSwitching = true;
    this.keepChoice();
    await this.session.close();
    this.openAsks.replaceChildren();
    for (const shown of this.runs.values()) {
      shown.leave();
      if (!shown.isEnded) shown.element.remove();
    }
    this.runs.clear();
    this.isSwitching = false;
    this.open();
    if (this.isPaused) this.settle(this.session.pause());
  }

  shown(run) {
    if (!this.runs.has(run)) {
      const shown = new ShownRun(this.session, run, () => this.follow());
      this.runs.set(run, shown);
      this.append(shown.element);
      for (const [name, old] of [...this.runs].slice(0, -RUNS_SHOWN)) {
        old.leave();
        old.element.remove();
        this.runs.delete(name);
      }
    }
    return this.runs.get(run);
  }

  get openRun() {
    return [...this.runs.values()].findLast((shown) => !shown.isEnded) ?? null;
  }

  onMessage({ kind, run, payload }) {
    if (kind === "echo" && payload.client !== this.session.client) this.append(line("said other", `${payload.client}: ${payload.payload.text}`));
    if (kind === "thinking" && payload.done) this.shown(run).thinking.after(line("thought", `thought for ${(payload.duration_ms / 1000).toFixed(1)} s`));
    if (kind === "snapshot" && run) {
      this.shown(run).element.dataset.snapshot = "true";
      this.root.dataset.snapshots = Number(this.root.dataset.snapshots ?? 0) + 1; // runs that are shown no more count, too
    }
  }

  // ---- what its person does ----------------------------------------------------------------------------------------

  listen() {
    let top = 0;
    this.box.onscroll = () => {
      const { scrollTop, scrollHeight, clientHeight } = this.box;
      if (scrollHeight - scrollTop - clientHeight < NEAR_END_PX) this.isFollowing = true;
      else if (scrollTop < top) this.isFollowing = false; // its reader went back; a change of layout does not
      top = scrollTop;
    };
    this.channel.onchange = () => this.reopen();
    this.network.oninput = () => this.changeNetwork();
    this.blocks.onchange = () => this.changeNetwork();
    this.root.querySelector('[data-do="interrupt"]').onclick = () => this.interrupt();
    this.root.querySelector('[data-do="pause"]').onclick = () => this.pause();
    this.form.onsubmit = (event) => {
      event.preventDefault();
      const text = this.form.text.value.trim();
      if (text) this.say(text);
      this.form.reset();
    };
    this.showNetwork();
  }

  async interrupt() {
    const shown = this.openRun;
    if (shown === null) return;
    const began = performance.now();
    await this.settle(this.session.interrupt(shown.run));
    const silentMs = Math.round(performance.now() - began);
    shown.foot.before(line("cut", `${shown.run} interrupted here: silent after ${silentMs} ms`));
    this.follow();
  }

  async pause() {
    this.isPaused = !this.isPaused;
    this.root.classList.toggle("paused", this.isPaused);
    this.root.querySelector('[data-do="pause"]').textContent = this.isPaused ? "resume" : "pause";
    await this.settle(this.isPaused ? this.session.pause() : this.session.resume());
  }

  async say(text) {
    const shown = line("said underway", text);
    this.append(shown);
    await this.settle(this.session.send({ text }));
    shown.classList.remove("underway");
  }

  async settle(accepted) {
    try {
      await accepted;
    } catch (error) {
      this.note(`this browser: ${error.message}`);
    }
  }

  // ---- asks --------------------------------------------------------------------------------------------------------

  showAsk({ ask, message, payload }) {
    const shown = line("ask", line("question", message));
    shown.dataset.ask = ask;
    for (const value of payload.options ?? []) {
      const button = document.createElement("button");
      button.textContent = value;
      button.onclick = () => {
        for (const each of shown.querySelectorAll("button")) each.disabled = true;
        this.settle(this.session.answer(ask, value));
      };
      shown.append(button);
    }
    this.openAsks.append(shown);
  }

  resolve(ask, outcome) {
    const shown = this.openAsks.querySelector(`[data-ask="${CSS.escape(ask)}"]`);
    if (shown === null) return;
    for (const button of shown.querySelectorAll("button")) button.remove();
    shown.append(line("outcome", outcome));
    this.append(shown);
  }

  // ---- its network -------------------------------------------------------------------------------------------------

  networkName() {
    return this.root.querySelectorAll("#networks option")[this.network.value].label;
  }

  changeNetwork() {
    this.showNetwork();
    this.keepChoice();
    this.isNetworkTold = false;
    this.tellNetwork();
  }

  showNetwork() {
    this.root.querySelector("#network-name").textContent = this.networkName();
  }

  // Known by client id, which the store may still be asked for.
  tellNetwork() {
    if (this.isNetworkTold || !this.session.client) return;
    this.isNetworkTold = true;
    this.act(`network/${this.session.client}`, { network: this.networkName(), blocks_websockets: this.blocks.checked });
  }

  keepChoice() {
    const { channel, network, blocks } = this;
    sessionStorage.setItem(this.choice, JSON.stringify({ channel: channel.value, network: network.value, blocks: blocks.checked }));
  }

  // ---- what is shown -----------------------------------------------------------------------------------------------

  showState({ state, channel, cause, retryIn }) {
    const words = channel === null ? state : `${state} by ${CHANNEL_NAMES[channel]}`;
    const wait = retryIn === null || state === "live" ? "" : `, next attempt in ${(retryIn / 1000).toFixed(1)} s`;
    Object.assign(this.root.dataset, { state, channel: channel ?? "", client: this.session.client });
    this.root.querySelector(".state").textContent = words;
    this.root.querySelector(".state").className = `pill state ${{ live: "up", closed: "down", offline: "down" }[state] ?? "starting"}`;
    if (state !== "connecting") this.note(`this browser: ${words}${cause && state !== "live" ? ` (${cause})` : ""}${wait}`);
    this.showPlace();
  }

  showPlace() {
    const { quality, cursor, client } = this.session;
    this.root.querySelector(".rtt").textContent = quality.rtt === null ? "" : `RTT ${Math.round(quality.rtt)} ms`;
    const meter = this.root.querySelector("meter");
    meter.value = quality.score;
    meter.title = `quality ${quality.score}: ${quality.level}`;
    this.root.querySelector(".level").textContent = quality.level;
    this.root.querySelector(".cursor").textContent = cursor ?? "";
    this.root.querySelector(".client-id").textContent = client;
  }

  showGateway(browsers) {
    const place = browsers[this.session.client] ?? "";
    this.root.dataset.gateway = place;
    return place;
  }

  append(element) {
    this.box.append(element);
    while (this.box.childElementCount > LINES_SHOWN) this.box.firstElementChild.remove();
    this.follow();
  }

  follow() {
    if (this.isFollowing) this.box.scrollTop = this.box.scrollHeight;
  }
}
