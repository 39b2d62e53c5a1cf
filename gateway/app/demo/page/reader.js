// The smallest honest reader: keeps its cursor, acknowledges, comes back with full jitter, takes no message twice and
// none after a hole, checks every digest. What it says is said again on each connection until it is settled.
const ACK_EVERY_MS = 250;
const SILENT_MS = 8000;
const RETRY_MS = 500;
const bytes = new TextEncoder();
const text = new TextDecoder();

// One text of one run: what is new of each part, by its offset in UTF-8 bytes.
class RunText {
  value = "";
  length = 0;
  isWhole = true;

  add(part, at = this.length) {
    const data = bytes.encode(part);
    if (at > this.length) [this.isWhole, this.length] = [false, at];
    const fresh = at < this.length ? text.decode(data.subarray(this.length - at)) : part;
    this.length = Math.max(this.length, at + data.length);
    this.value += fresh;
    return fresh;
  }
}

export class SessionReader {
  constructor({ url, onState, onPiece }) {
    this.url = url;
    this.onState = onState;
    this.onPiece = onPiece;
    this.client = `browser-${Math.random().toString(36).slice(2, 10)}`;
    this.place = { cursor: null, seq: 0, gateway: null, connection: null, rtt_ms: null, state: "connecting", paused: false };
    this.texts = new Map();
    this.openRun = null;
    this.interrupted = null;
    this.wishes = new Map();
    this.inputSeq = 0;
    this.wishId = 0;
    this.socket = null;
  }

  async run() {
    for (let attempt = 0; ; attempt++) {
      if (await this.readOnce()) attempt = 0;
      this.place.state = "reconnecting";
      this.onState({ ...this.place });
      const delay = this.place.after_ms ?? Math.random() * Math.min(4000, 250 * 2 ** Math.min(attempt, 5));
      this.place.after_ms = null;
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }

  // ---- what its person does ----------------------------------------------------------------------------------------

  interrupt() {
    const run = this.openRun;
    if (!run) return;
    this.interrupted = { run, began: performance.now() };
    this.wish({ kind: "interrupt", run, seen: { seq: this.place.seq, at: this.textOf(run, "text").length } });
  }

  pause() {
    this.place.paused = !this.place.paused;
    this.wish({ kind: this.place.paused ? "pause" : "resume" });
    this.onState({ ...this.place });
  }

  answer({ ask, value }) {
    this.wish({ kind: "answer", ask, value });
  }

  say({ text }) {
    const seq = ++this.inputSeq;
    this.keep(`input ${seq}`, { type: "text", seq, payload: { text } });
    this.onPiece({ kind: "said", text });
  }

  wish(payload) {
    const id = `w${++this.wishId}`;
    this.keep(id, { type: "control", payload: { ...payload, id } });
  }

  keep(key, message) {
    this.wishes.set(key, JSON.stringify(message));
    this.send(this.wishes.get(key));
  }

  send(message) {
    if (this.place.state === "live" && this.socket?.readyState === WebSocket.OPEN) this.socket.send(message);
  }

  settle({ kind, what, id, seq, run, retryable, after_ms }) {
    const key = what === "input" ? `input ${seq}` : id;
    const message = this.wishes.get(key);
    if (message && kind === "error" && retryable) return setTimeout(() => this.send(message), after_ms ?? RETRY_MS);
    this.wishes.delete(key);
    if (what === "interrupt" && kind === "accepted" && this.interrupted?.run === run) {
      const silent_ms = Math.round(performance.now() - this.interrupted.began);
      this.onPiece({ kind: "cut", run, silent_ms, at: this.textOf(run, "text").length });
    }
  }

  // ---- one connection ----------------------------------------------------------------------------------------------

  readOnce() {
    return new Promise((resolve) => {
      const { place } = this;
      const query = new URLSearchParams({ client: this.client, ack: "1", rhythm: "1" });
      if (place.cursor) query.set("cursor", place.cursor);
      if (place.connection) query.set("replaces", place.connection); // its gateway may not know yet that it is dead
      const socket = (this.socket = new WebSocket(`${this.url}?${query}`, "relayrouter.v1"));
      let heard = performance.now();
      let asked = null;
      let acked = place.seq;
      let wasLive = false;
      const timer = setInterval(() => {
        if (performance.now() - heard > SILENT_MS) return finish();
        if (socket.readyState !== WebSocket.OPEN) return;
        if (place.seq > acked) socket.send(JSON.stringify({ type: "control", payload: { kind: "ack", seq: (acked = place.seq) } }));
        if (asked === null || performance.now() - asked > 2000) {
          asked = performance.now();
          socket.send(JSON.stringify({ type: "control", payload: { kind: "ping" } }));
        }
      }, ACK_EVERY_MS);
      function finish() {
        clearInterval(timer);
        socket.onmessage = socket.onclose = socket.onerror = null;
        socket.close();
        resolve(wasLive);
      }
      socket.onclose = () => {
        place.connection = null;
        finish();
      };
      socket.onmessage = ({ data }) => {
        heard = performance.now();
        const frame = JSON.parse(data);
        const { kind } = frame.payload;
        if (frame.type === "control") {
          if (kind === "pong" && asked !== null) place.rtt_ms = heard - asked;
          if (kind === "welcome") wasLive = true;
          this.control(frame.payload);
          if (frame.payload.cursor) acked = place.seq;
        } else {
          if (frame.seq <= place.seq) return; // had that one
          if ((frame.first_seq ?? frame.seq) > place.seq + 1) return finish(); // a hole: ask again from the cursor
          this.apply(frame.payload);
          place.seq = frame.seq;
          place.cursor = place.cursor.replace(/[0-9]+$/, frame.seq);
        }
        this.onState({ ...place });
      };
    });
  }

  control(payload) {
    const { kind, cursor } = payload;
    if (kind === "snapshot" && payload.run) this.rebuild(payload);
    if (cursor) Object.assign(this.place, { cursor, seq: Number(cursor.split(".")[2]) });
    if (kind === "welcome") {
      const { gateway, connection, input_seq } = payload;
      Object.assign(this.place, { gateway, connection, state: "live" });
      this.inputSeq = Math.max(this.inputSeq, input_seq);
      if (this.place.paused) this.send(JSON.stringify({ type: "control", payload: { kind: "pause" } }));
      for (const message of this.wishes.values()) this.send(message);
    } else if (kind === "reconnect_later") this.place.after_ms = payload.after_ms;
    else if (kind === "accepted" || kind === "error") this.settle(payload);
    else if (kind === "ask_open") this.apply(payload.ask);
    else if (kind === "rhythm") this.onPiece(payload);
  }

  // ---- texts -------------------------------------------------------------------------------------------------------

  textOf(run, track) {
    if (!this.texts.has(run)) this.texts.set(run, { text: new RunText(), thinking: new RunText() });
    return this.texts.get(run)[track];
  }

  // From the run's beginning on; what is there already is not shown again.
  rebuild({ run, track, at, text, start, end }) {
    if (start) this.openRun = run;
    this.show(run, track === "thinking" ? { kind: "thinking" } : { kind: "delta" }, text, at);
    if (end) this.end(end);
  }

  apply(payload) {
    const { kind, run, text, at } = payload;
    if (kind === "run_start") {
      this.texts.delete(run);
      this.openRun = run;
    } else if (kind === "delta" || kind === "thinking") {
      this.show(run, { kind }, text, at);
      if (payload.done) this.onPiece({ run, kind: "thought", duration_ms: payload.duration_ms });
    } else if (kind === "code_block") this.show(run, { kind: "code", block: payload.block, language: payload.language }, text, at);
    else if (kind === "ask") this.onPiece({ kind, ask: payload.ask, text: payload.message, options: payload.options });
    else if (kind === "ask_resolved") this.onPiece({ ...payload, kind: "resolved" });
    else if (kind === "echo" && payload.client !== this.client) this.onPiece({ kind, client: payload.client, text: payload.payload.text });
    else if (kind === "run_end") this.end(payload);
  }

  show(run, look, part, at) {
    const fresh = this.textOf(run, look.kind === "thinking" ? "thinking" : "text").add(part, at);
    if (fresh) this.onPiece({ run, ...look, text: fresh });
  }

  async end({ run, reason, bytes, sha256 }) {
    if (this.openRun === run) this.openRun = null;
    const known = this.textOf(run, "text");
    this.texts.delete(run);
    this.onPiece({ run, kind: "end", end: { reason, bytes, equal: await digestEquals(known, sha256) } });
  }
}

async function digestEquals({ isWhole, value }, sha256) {
  if (!isWhole || !sha256 || !crypto.subtle) return null; // joined in the middle, stopped, or not a secure context
  const digest = await crypto.subtle.digest("SHA-256", bytes.encode(value));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("") === sha256;
}
