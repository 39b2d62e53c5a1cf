/*! RelayRouter, Apache-2.0 */
var __defProp = Object.defineProperty;
var __getOwnPropNames = Object.getOwnPropertyNames;
var __esm = (fn, res, err) => function __init() {
  if (err) throw err[0];
  try {
    return fn && (res = (0, fn[__getOwnPropNames(fn)[0]])(fn = 0)), res;
  } catch (e) {
    throw err = [e], e;
  }
};
var __export = (target, all) => {
  for (var name in all)
    __defProp(target, name, { get: all[name], enumerable: true });
};

// src/errors.ts
var RelayError, AuthError, ForbiddenError, NotFoundError, SupersededError, TooLargeError, QueueFullError, ConflictError, RefusedError, ClosedError, ProtocolError;
var init_errors = __esm({
  "src/errors.ts"() {
    "use strict";
    RelayError = class extends Error {
      constructor(code, message, retryable = false) {
        super(message);
        this.code = code;
        this.retryable = retryable;
        this.name = "RelayError";
      }
    };
    AuthError = class extends RelayError {
      constructor(message, code = "unauthenticated") {
        super(code, message);
        this.name = "AuthError";
      }
    };
    ForbiddenError = class extends RelayError {
      constructor(message, code = "forbidden") {
        super(code, message);
        this.name = "ForbiddenError";
      }
    };
    NotFoundError = class extends RelayError {
      constructor(message, code = "not_found") {
        super(code, message);
        this.name = "NotFoundError";
      }
    };
    SupersededError = class extends RelayError {
      constructor() {
        super("superseded", "a newer connection of this client has taken over");
        this.name = "SupersededError";
      }
    };
    TooLargeError = class extends RelayError {
      constructor(message) {
        super("too_large", message);
        this.name = "TooLargeError";
      }
    };
    QueueFullError = class extends RelayError {
      constructor(message) {
        super("queue_full", message, true);
        this.name = "QueueFullError";
      }
    };
    ConflictError = class extends RelayError {
      constructor(message) {
        super("conflict", message);
        this.name = "ConflictError";
      }
    };
    RefusedError = class extends RelayError {
      constructor(code, message) {
        super(code, message);
        this.name = "RefusedError";
      }
    };
    ClosedError = class extends RelayError {
      constructor(message = "the session is closed") {
        super("closed", message);
        this.name = "ClosedError";
      }
    };
    ProtocolError = class extends RelayError {
      constructor(message) {
        super("protocol", message);
        this.name = "ProtocolError";
      }
    };
  }
});

// src/digests.ts
var digests_exports = {};
__export(digests_exports, {
  sha256: () => sha256
});
function sha256(data) {
  const padded = new Uint8Array((data.length + 8 >> 6) + 1 << 6);
  padded.set(data);
  padded[data.length] = 128;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(data.length / 2 ** 29));
  view.setUint32(padded.length - 4, data.length << 3);
  const state = Uint32Array.from(START);
  const w = new Uint32Array(64);
  const at = (list, i) => list[i];
  for (let block = 0; block < padded.length; block += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getUint32(block + 4 * i);
    for (let i = 16; i < 64; i++) {
      const x = at(w, i - 15);
      const y = at(w, i - 2);
      const s0 = turn(x, 7) ^ turn(x, 18) ^ x >>> 3;
      const s1 = turn(y, 17) ^ turn(y, 19) ^ y >>> 10;
      w[i] = at(w, i - 16) + s0 + at(w, i - 7) + s1;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const big1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
      const t1 = h + big1 + (e & f ^ ~e & g) + at(ROUND, i) + at(w, i) | 0;
      const big0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
      const t2 = big0 + (a & b ^ a & c ^ b & c) | 0;
      h = g;
      g = f;
      f = e;
      e = d + t1 | 0;
      d = c;
      c = b;
      b = a;
      a = t1 + t2 | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((value, i) => {
      state[i] = at(state, i) + value;
    });
  }
  return [...state].map((word2) => word2.toString(16).padStart(8, "0")).join("");
}
var ROUND, START, fraction, turn;
var init_digests = __esm({
  "src/digests.ts"() {
    "use strict";
    ROUND = new Uint32Array(64);
    START = new Uint32Array(8);
    fraction = (x) => (x - Math.floor(x)) * 2 ** 32 | 0;
    for (let n = 2, found = 0; found < 64; n++) {
      let isPrime = true;
      for (let d = 2; d * d <= n; d++) if (n % d === 0) isPrime = false;
      if (!isPrime) continue;
      if (found < 8) START[found] = fraction(Math.sqrt(n));
      ROUND[found++] = fraction(Math.cbrt(n));
    }
    turn = (x, n) => x >>> n | x << 32 - n;
  }
});

// src/close_codes.ts
function reconnectAfter(code, reason) {
  if (code === NORMAL && reason === MOVED) return "yes";
  return CLOSE_CODES.get(code) ?? "backoff";
}
var CLOSE_CODES, NORMAL, TOO_BIG, UNAUTHENTICATED, SUPERSEDED, MOVED;
var init_close_codes = __esm({
  "src/close_codes.ts"() {
    "use strict";
    CLOSE_CODES = /* @__PURE__ */ new Map([
      [1e3, "no"],
      [1001, "yes"],
      [1002, "no"],
      [1003, "no"],
      [1007, "no"],
      [1008, "no"],
      [1009, "drop_message"],
      [1011, "backoff"],
      [1012, "slot"],
      [1013, "backoff"],
      [4401, "new_token"],
      [4403, "no"],
      [4404, "no"],
      [4408, "backoff"],
      [4409, "no"],
      [4429, "backoff"]
    ]);
    NORMAL = 1e3;
    TOO_BIG = 1009;
    UNAUTHENTICATED = 4401;
    SUPERSEDED = 4409;
    MOVED = "moved";
  }
});

// src/endings.ts
function judge(ending) {
  switch (ending.kind) {
    case "error":
      return { kind: "final", error: ending.error };
    case "busy":
      return { kind: "again", isBusy: true, afterMs: ending.afterMs };
    case "broken":
      return { kind: "again", isBusy: false, afterMs: null };
    case "closed": {
      const rule = reconnectAfter(ending.code, ending.reason);
      if (rule === "no") return { kind: "final", error: finalError(ending.code, ending.reason) };
      if (rule === "new_token") return { kind: "new_token" };
      return { kind: "again", isBusy: ending.code === 4429 || ending.code === 1013, afterMs: null };
    }
  }
}
function causeOf(ending) {
  if (ending.kind === "error") return ending.error.message;
  return ending.kind === "closed" ? `${ending.reason || "closed"} (${ending.code})` : ending.reason;
}
function finalError(code, reason) {
  const message = reason || `closed with ${code}`;
  switch (code) {
    case UNAUTHENTICATED:
      return new AuthError(message);
    case 4403:
      return new ForbiddenError(message);
    case 4404:
      return new NotFoundError(message);
    case SUPERSEDED:
      return new SupersededError();
    case NORMAL:
      return new RefusedError("closed", message);
    case 1008:
      return new RefusedError("policy", message);
    default:
      return new ProtocolError(message);
  }
}
var NO_GATEWAY, broken, isTooBig, isSuperseded, isClosedByServer;
var init_endings = __esm({
  "src/endings.ts"() {
    "use strict";
    init_close_codes();
    init_errors();
    NO_GATEWAY = "no gateway answered";
    broken = (reason) => ({ kind: "broken", reason });
    isTooBig = (ending) => ending.kind === "closed" && ending.code === TOO_BIG;
    isSuperseded = (ending) => ending.kind === "closed" && ending.code === SUPERSEDED;
    isClosedByServer = (ending) => ending.kind === "closed";
  }
});

// src/messages.ts
function objectOf(value) {
  return isObject(value) ? value : {};
}
function textOf(value) {
  return typeof value === "string" ? value : "";
}
function numberOf(value) {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
function readFrame(envelope) {
  if (!isObject(envelope) || !isObject(envelope.payload) || typeof envelope.type !== "string") {
    throw new BadFrame(NO_ENVELOPE);
  }
  const payload = envelope.payload;
  if (typeof payload.kind !== "string") throw new BadFrame(NO_ENVELOPE);
  const isControl = envelope.type === "control";
  const seq = integer(envelope.seq, "seq");
  integer(payload.at, "at");
  if (!isControl && seq === null) throw new BadFrame(NO_ENVELOPE);
  return {
    isControl,
    kind: payload.kind,
    seq,
    firstSeq: integer(envelope.first_seq, "first_seq") ?? seq,
    timestamp: integer(envelope.timestamp, "timestamp") ?? 0,
    run: typeof payload.run === "string" ? payload.run : null,
    payload
  };
}
function readJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new BadFrame(NO_ENVELOPE);
  }
}
function integer(value, name) {
  if (typeof value !== "number") return null;
  if (!Number.isSafeInteger(value)) throw new ProtocolError(`${name} is above 2^53`);
  return value;
}
var BadFrame, NO_ENVELOPE, isObject, control;
var init_messages = __esm({
  "src/messages.ts"() {
    "use strict";
    init_errors();
    BadFrame = class extends Error {
    };
    NO_ENVELOPE = "a frame that is no envelope";
    isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
    control = (payload) => JSON.stringify({ type: "control", payload });
  }
});

// src/ask.ts
async function ask(platform, request) {
  const deadline = new AbortController();
  const cancel = platform.after(request.timeoutMs, () => deadline.abort());
  const abort = () => deadline.abort();
  request.signal?.addEventListener("abort", abort);
  try {
    if (platform.fetch === null || request.signal?.aborted) return NO_REPLY;
    const init = requestInit(request.token, deadline.signal);
    if (request.body !== void 0) {
      init.method = "POST";
      init.body = JSON.stringify(request.body);
      init.headers["Content-Type"] = "application/json";
    }
    return await readReply(await platform.fetch(request.url, init));
  } catch {
    return NO_REPLY;
  } finally {
    cancel();
    request.signal?.removeEventListener("abort", abort);
  }
}
function requestInit(token, signal, accept = "application/json") {
  const headers = { Accept: accept };
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  return { headers, signal, redirect: "manual", cache: "no-store", credentials: "omit" };
}
async function readReply(response) {
  const body = objectOf(await response.json().catch(() => null));
  const error = objectOf(body.error);
  const code = textOf(error.code);
  const isOurs = response.ok ? Object.keys(body).length > 0 : code !== "";
  const afterMs = response.status === 429 || response.status === 503 ? retryAfterMs(response) : null;
  if (!isOurs) return { ...NO_REPLY, isAnswered: true, afterMs };
  return {
    isAnswered: true,
    status: response.status,
    body,
    refusal: response.ok ? null : { code, message: textOf(error.message), details: objectOf(error.details) },
    afterMs
  };
}
function retryAfterMs(response) {
  const value = response.headers.get("Retry-After");
  return value !== null && /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1e3 : null;
}
function endingOf(reply) {
  const { status, refusal, afterMs } = reply;
  if (refusal === null) {
    return afterMs === null ? broken(NO_GATEWAY) : { kind: "busy", reason: "busy", afterMs };
  }
  const reason = refusal.message || refusal.code;
  switch (status) {
    case 401:
      return { kind: "closed", code: UNAUTHENTICATED, reason };
    case 403:
      return { kind: "closed", code: 4403, reason };
    case 404:
    case 410:
      return { kind: "closed", code: 4404, reason };
    case 429:
    case 503:
      return { kind: "busy", reason, afterMs };
    default:
      if (status >= 500 || status === 408 || status === 425) return { kind: "closed", code: 1011, reason };
      return { kind: "error", error: new RefusedError(refusal.code, reason) };
  }
}
var NO_REPLY;
var init_ask = __esm({
  "src/ask.ts"() {
    "use strict";
    init_close_codes();
    init_endings();
    init_errors();
    init_messages();
    NO_REPLY = { isAnswered: false, status: 0, body: {}, refusal: null, afterMs: null };
  }
});

// src/http.ts
function sessionUrl(base, session, what, query = {}) {
  const text = new URLSearchParams(query).toString();
  return `${base}/v1/sessions/${encodeURIComponent(session)}/${what}${text && `?${text}`}`;
}
var socketUrl;
var init_http = __esm({
  "src/http.ts"() {
    "use strict";
    socketUrl = (base, session, query) => sessionUrl(base, session, "ws", query).replace(/^http/, "ws");
  }
});

// src/explain.ts
async function explained(platform, { session, timing }, connection, query, ending) {
  const { url: base, token } = connection;
  const url = sessionUrl(base, session, "ws", query);
  const reply = await ask(platform, { url, token, timeoutMs: timing.connectTimeout });
  connection.isAnswered = reply.isAnswered;
  const told = endingOf(reply);
  return told.kind === "broken" ? ending : told;
}
var init_explain = __esm({
  "src/explain.ts"() {
    "use strict";
    init_ask();
    init_http();
  }
});

// src/poll.ts
function openPoll(platform, request, sink) {
  const stop = new AbortController();
  void poll(platform, request, sink, stop.signal).then((ending) => {
    if (!stop.signal.aborted && ending !== null) sink.ended(ending);
    stop.abort();
  });
  return { name: "poll", isDuplex: false, send: () => false, close: () => stop.abort() };
}
async function poll(platform, request, sink, signal) {
  const { cursor, ...query } = request.query;
  let since = cursor;
  let replaces = query.replaces;
  for (let count = 0; ; count++) {
    const wait = count === 0 ? FIRST_WAIT_SECONDS : request.settings.timing.pollWait / 1e3;
    const url = sessionUrl(request.base, request.settings.session, "messages", {
      ...query,
      sdk: "1",
      limit: LIMIT,
      wait: String(wait),
      ...since !== void 0 && { since },
      ...replaces !== void 0 && { replaces }
    });
    const began = platform.now();
    const timeoutMs = wait * 1e3 + request.settings.timing.connectTimeout;
    const reply = await ask(platform, { url, token: request.token, timeoutMs, signal });
    if (signal.aborted) return null;
    if (reply.refusal !== null) return endingOf(reply);
    const { frames, close, connection } = reply.body;
    if (!Array.isArray(frames)) return broken(NO_GATEWAY);
    if (count === 0) sink.opened();
    sink.heard();
    for (const frame of frames) {
      sink.frame(frame, frames.length && JSON.stringify(frame).length);
      if (signal.aborted) return null;
    }
    if (typeof reply.body.cursor === "string") since = reply.body.cursor;
    if (typeof connection === "string") replaces = connection;
    if (close) {
      return {
        kind: "closed",
        code: numberOf(objectOf(close).code) ?? 1011,
        reason: textOf(objectOf(close).reason)
      };
    }
    const isEmpty = frames.length <= 1 && count > 0;
    if (isEmpty && platform.now() - began < LEAST_MS) await pause(platform, LEAST_MS);
    await sink.room();
    if (signal.aborted) return null;
  }
}
var FIRST_WAIT_SECONDS, LIMIT, LEAST_MS, pause;
var init_poll = __esm({
  "src/poll.ts"() {
    "use strict";
    init_ask();
    init_endings();
    init_http();
    init_messages();
    FIRST_WAIT_SECONDS = 0.1;
    LIMIT = "500";
    LEAST_MS = 500;
    pause = (platform, ms) => new Promise((resolve) => platform.after(ms, resolve));
  }
});

// src/cursor.ts
function parseCursor(text) {
  const match = typeof text === "string" ? FORM.exec(text) : null;
  const seq = Number(match?.[2]);
  if (!match?.[1] || !Number.isSafeInteger(seq)) throw new ProtocolError("not a cursor that a gateway gave out");
  return { line: match[1], seq };
}
var FORM, formatCursor;
var init_cursor = __esm({
  "src/cursor.ts"() {
    "use strict";
    init_errors();
    FORM = /^([0-9a-z]{1,32}\.[0-9a-z]{1,32})\.(0|[1-9][0-9]{0,15})$/;
    formatCursor = (cursor) => `${cursor.line}.${cursor.seq}`;
  }
});

// src/history.ts
async function readHistory(platform, request, onPage) {
  let { since } = request;
  for (let page = 0; page < MAX_PAGES; page++) {
    const query = { client: request.client, limit: LIMIT2, ...since !== null && { since } };
    const url = sessionUrl(request.base, request.session, "messages", query);
    const { refusal, body } = await ask(platform, { url, token: request.token, timeoutMs: request.timeoutMs });
    if (refusal !== null || !Array.isArray(body.frames)) return false;
    if (!onPage(body.frames)) return true;
    if (body.more !== true || typeof body.cursor !== "string" || body.cursor === since) return true;
    since = body.cursor;
  }
  return false;
}
var LIMIT2, MAX_PAGES;
var init_history = __esm({
  "src/history.ts"() {
    "use strict";
    init_ask();
    init_http();
    LIMIT2 = "1000";
    MAX_PAGES = 20;
  }
});

// src/texts.ts
var encoder, decoder, MAX_TEXT_BYTES, ENDED_RUNS_KEPT, RUNS_KEPT, TRACKS, trackOf, utf8Length, RunText, NOTHING, RunTexts;
var init_texts = __esm({
  "src/texts.ts"() {
    "use strict";
    init_messages();
    encoder = new TextEncoder();
    decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    MAX_TEXT_BYTES = 16 * 1024 * 1024;
    ENDED_RUNS_KEPT = 16;
    RUNS_KEPT = 1e3;
    TRACKS = { delta: "text", code_block: "text", thinking: "thinking" };
    trackOf = (kind) => TRACKS[kind] ?? null;
    utf8Length = (text) => encoder.encode(text).length;
    RunText = class {
      constructor() {
        /** Bytes of the run's text up to here, counted from its start. */
        this.length = 0;
        /** The log lost writes and did not say how much of this text: it goes on at the next `at`. */
        this.isCutByNext = false;
        this._start = 0;
        this._kept = "";
        /** Bytes of `kept`. */
        this._keptBytes = 0;
        /** `kept` in UTF-8, while it stays as it is: what is sent again is compared piece by piece. */
        this._encoded = null;
      }
      /** Known from its first byte on without a hole. */
      get isWhole() {
        return this._start === 0;
      }
      /** What of it is new; an overlap with what is there is sliced by bytes. */
      add(text, at) {
        if (at !== null) {
          if (this.isCutByNext) this.cut(at);
          this.isCutByNext = false;
          if (at > this.length) this._beginAt(at);
        }
        if ((at === null || at === this.length) && this.length - this._start === this._keptBytes) {
          this._kept += text;
          this._encoded = null;
          this._grow(utf8Length(text));
          return { text, isRewritten: false };
        }
        return this._addOver(encoder.encode(text), at ?? this.length);
      }
      /** The log goes on from here: what lies beyond is gone from it. */
      cut(length) {
        if (length < this._start) this._beginAt(length);
        this.length = Math.min(this.length, length);
      }
      restart() {
        if (this.length || this._start) this._beginAt(0);
      }
      value() {
        const bytes = this.length - this._start;
        return bytes === this._keptBytes ? this._kept : decoder.decode(encoder.encode(this._kept).subarray(0, bytes));
      }
      /** The whole text as fetched again. */
      replace(value) {
        this._beginAt(0);
        this.add(value, 0);
      }
      /** What came before our part, from a text that has it. False: that one has a hole there, too. */
      prepend(whole) {
        const before = encoder.encode(whole.value()).subarray(0, this._start);
        if (!whole.isWhole || before.length < this._start) return false;
        this._kept = decoder.decode(before) + this._kept;
        this._encoded = null;
        this._keptBytes += this._start;
        this._start = 0;
        return true;
      }
      _addOver(data, at) {
        const fresh = data.subarray(Math.max(0, this.length - at));
        const here = this.length - this._start;
        this._encoded ??= encoder.encode(this._kept);
        const known = this._encoded;
        const shown = known.subarray(here, here + fresh.length);
        const isRewritten = fresh.length > 0 && !shown.every((byte, i) => byte === fresh[i]);
        const isLonger = shown.length < fresh.length;
        if (isRewritten || isLonger) {
          this._kept = decoder.decode(known.subarray(0, here)) + decoder.decode(fresh);
          this._keptBytes = here + fresh.length;
          this._encoded = null;
        }
        const added = isRewritten ? fresh : fresh.subarray(shown.length);
        this.length += fresh.length;
        this._bound();
        return { text: decoder.decode(added), isRewritten };
      }
      _grow(bytes) {
        this.length += bytes;
        this._keptBytes += bytes;
        this._bound();
      }
      _bound() {
        if (this._keptBytes > MAX_TEXT_BYTES) this._beginAt(this.length);
      }
      _beginAt(at) {
        this._start = this.length = at;
        this._kept = "";
        this._encoded = null;
        this._keptBytes = 0;
      }
    };
    NOTHING = { text: "", isRewritten: false };
    RunTexts = class {
      constructor() {
        this.runs = /* @__PURE__ */ new Map();
      }
      /** Take one frame at its place; null when it is about no run's text. */
      apply(frame) {
        const { run, kind, payload } = frame;
        if (frame.isControl && kind === "gap") this._gap(payload);
        if (run === null) return null;
        if (frame.isControl) return kind === "snapshot" ? this._rebuild(run, payload) : null;
        const track = trackOf(kind);
        const change = { run, track, added: NOTHING, begins: false, end: null };
        if (track !== null) {
          return { ...change, added: this._of(run)[track].add(textOf(payload.text), numberOf(payload.at)) };
        }
        if (kind === "run_start") {
          this._begin(this._of(run));
          return { ...change, begins: true };
        }
        if (kind === "run_end") {
          this._end(run, payload);
          return { ...change, end: payload };
        }
        if (kind === "cut") this._of(run).isCut = true;
        return null;
      }
      _begin(known) {
        known.text.restart();
        known.thinking.restart();
        known.reason = null;
        known.hasGap = known.isCut = known.isHealed = known.isFilled = false;
      }
      /** Part of a text from its beginning on: what is known of it is not shown again. */
      _rebuild(run, payload) {
        const known = this._of(run);
        const track = payload.track === "thinking" ? "thinking" : "text";
        const begins = payload.start !== void 0;
        const isCut = payload.cut === true;
        if (begins) {
          known.hasGap = false;
          known.reason = null;
        }
        const at = numberOf(payload.at);
        if (at === 0 && !isCut) known[track].cut(0);
        const added = known[track].add(textOf(payload.text), at);
        if (payload.partial === true) known.hasGap = true;
        if (isCut) known.isCut = true;
        const end = payload.end === void 0 ? null : objectOf(payload.end);
        if (end) this._end(run, end);
        return { run, track, added, begins, end };
      }
      _of(name) {
        let known = this.runs.get(name);
        if (known === void 0) {
          known = {
            text: new RunText(),
            thinking: new RunText(),
            reason: null,
            hasGap: true,
            isCut: false,
            isHealed: false,
            isFilled: false
          };
          this.runs.set(name, known);
          this._forgetOld();
        }
        return known;
      }
      _end(name, payload) {
        const known = this._of(name);
        known.reason = textOf(payload.reason) || "complete";
        this.runs.delete(name);
        this.runs.set(name, known);
        this._forgetOld();
      }
      /** Another life or stretch of the log names what is still true; an eviction only leaves holes. */
      _gap(payload) {
        const reason = payload.reason;
        if (reason === "evicted") {
          for (const run of this.runs.values()) run.hasGap = true;
          return;
        }
        const isKnown = reason === "epoch_changed";
        const lengths = isKnown ? objectOf(payload.runs) : {};
        const thinking = isKnown && payload.thinking !== void 0 ? objectOf(payload.thinking) : null;
        for (const [name, run] of this.runs) {
          const length = lengths[name];
          run.text.cut(numberOf(length) ?? 0);
          if (thinking !== null) run.thinking.cut(numberOf(thinking[name]) ?? 0);
          else run.thinking.isCutByNext = length !== void 0;
          if (length === void 0) {
            run.thinking.cut(0);
            run.reason = null;
            run.hasGap = true;
          }
        }
      }
      _forgetOld() {
        const ended = [...this.runs].filter(([, run]) => run.reason !== null).map(([name]) => name);
        for (const name of ended.slice(0, Math.max(0, ended.length - ENDED_RUNS_KEPT))) this.runs.delete(name);
        for (const name of this.runs.keys()) {
          if (this.runs.size <= RUNS_KEPT) break;
          this.runs.delete(name);
        }
      }
    };
  }
});

// src/recovery.ts
var encoder2, ATTEMPTS, PAUSE_MS, Recovery;
var init_recovery = __esm({
  "src/recovery.ts"() {
    "use strict";
    init_cursor();
    init_history();
    init_messages();
    init_texts();
    encoder2 = new TextEncoder();
    ATTEMPTS = 4;
    PAUSE_MS = 500;
    Recovery = class {
      constructor(_platform, _emitter, _texts, _request) {
        this._platform = _platform;
        this._emitter = _emitter;
        this._texts = _texts;
        this._request = _request;
      }
      /** What follows `since`, handed to the reception. False when it could not be read to its end. */
      missing(since, reception) {
        const source = { line: parseCursor(since).line, start: null, parts: [] };
        return this._read(since, (frames) => {
          for (const envelope of frames) {
            reception.takeHistory(source, readFrame(envelope), JSON.stringify(envelope).length);
          }
          return true;
        });
      }
      /** Compares a run's text with the digest of its `run_end`; a text that is wrong is fetched again, once. */
      async verify(run, told) {
        const known = this._texts.runs.get(run);
        if (known === void 0 || known.isCut || typeof told.sha256 !== "string") return;
        if (await this._isEqual(known.text, told)) return this._tell(run, true, false);
        if (known.isHealed) return;
        known.isHealed = true;
        const fetched = await this._fetch(run);
        if (fetched !== null && await this._isEqual(fetched.text, told)) {
          known.text.replace(fetched.text.value());
          this._emitter.emit("text", { run, added: "", isRewritten: true });
          this._tell(run, true, true);
        } else if (!known.hasGap) {
          this._tell(run, false, false);
        }
      }
      /** A run that we joined in its middle although our place is before: the page was loaded again. */
      async fill(run, known) {
        if (known.isFilled || known.isCut) return;
        known.isFilled = true;
        const fetched = await this._fetch(run);
        if (fetched === null || this._texts.runs.get(run) !== known) return;
        for (const track of ["text", "thinking"]) {
          if (!known[track].isWhole && known[track].prepend(fetched[track])) {
            this._emitter.emit(track, { run, added: "", isRewritten: true });
          }
        }
      }
      /** Null: it could not be read, or is not there. */
      async _fetch(run) {
        for (let attempt = 1; ; attempt++) {
          const fetched = await this._fetchOnce(run);
          if (fetched !== void 0) return fetched;
          if (attempt === ATTEMPTS) return null;
          await new Promise((resolve) => this._platform.after(attempt * PAUSE_MS, resolve));
        }
      }
      async _fetchOnce(run) {
        const texts = new RunTexts();
        const isRead = await this._read(null, (frames) => {
          for (const envelope of frames) {
            const frame = readFrame(envelope);
            if (frame.run === run && texts.apply(frame)?.end) return false;
          }
          return true;
        });
        return isRead ? texts.runs.get(run) ?? null : void 0;
      }
      async _read(since, onPage) {
        const request = this._request();
        return request !== null && readHistory(this._platform, { ...request, since }, onPage);
      }
      async _isEqual(text, told) {
        if (!text.isWhole) return false;
        const data = encoder2.encode(text.value());
        if (typeof told.bytes === "number" && told.bytes !== data.length) return false;
        return await this._platform.sha256(data) === told.sha256;
      }
      _tell(run, ok, healed) {
        this._emitter.emit("digest", { run, ok, healed });
      }
    };
  }
});

// src/refusal.ts
function refusalOf(code, message) {
  switch (code) {
    case "unauthenticated":
      return new AuthError(message);
    case "forbidden":
      return new ForbiddenError(message);
    case "not_found":
    case "gone":
      return new NotFoundError(message, code);
    case "too_large":
      return new TooLargeError(message);
    case "conflict":
      return new ConflictError(message);
    default:
      return new RefusedError(code, message);
  }
}
var init_refusal = __esm({
  "src/refusal.ts"() {
    "use strict";
    init_errors();
  }
});

// src/input_queue.ts
function entryOf(payload, seq = null) {
  return { seq, payload, bytes: utf8Length(JSON.stringify(payload)), isSent: false, resolve: none2, reject: none2 };
}
var WINDOW, RETRY_MS, DEFAULT_LIMIT_BYTES, InputQueue, none2;
var init_input_queue = __esm({
  "src/input_queue.ts"() {
    "use strict";
    init_errors();
    init_messages();
    init_refusal();
    init_texts();
    WINDOW = 16;
    RETRY_MS = 500;
    DEFAULT_LIMIT_BYTES = 64 * 1024;
    InputQueue = class {
      constructor(_platform, _maxItems, _maxBytes, _sink) {
        this._platform = _platform;
        this._maxItems = _maxItems;
        this._maxBytes = _maxBytes;
        this._sink = _sink;
        this._entries = [];
        this._bytes = 0;
        this._limitBytes = DEFAULT_LIMIT_BYTES;
        /** What the gateway accepted last; null before the first welcome. */
        this._accepted = null;
        this._isOnline = false;
        this._isPumping = false;
        this._isAsked = false;
        this._cancelPause = null;
        this._closed = null;
      }
      get length() {
        return this._entries.length;
      }
      /** From an earlier life of this page: sent again under the same numbers. */
      restore(inputs) {
        const restored = inputs.map(({ seq, payload }) => entryOf(payload, seq));
        this._entries = [...restored, ...this._entries];
        this._bytes += restored.reduce((sum, entry) => sum + entry.bytes, 0);
      }
      /** Settles when the gateway has it for good, or never will. */
      add(payload) {
        const entry = entryOf(payload);
        const problem = this._problemOf(entry);
        if (problem !== null) return Promise.reject(problem);
        const promise = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject }));
        promise.catch(none2);
        this._entries.push(entry);
        this._bytes += entry.bytes;
        this._tell(entry, "queued");
        void this._pump();
        return promise;
      }
      /** A connection is live. Whatever is not settled is sent again. */
      welcome(inputSeq, limitBytes) {
        if (inputSeq !== null) this._accepted = Math.max(inputSeq, 0);
        if (limitBytes !== null) this._limitBytes = limitBytes;
        this._isOnline = true;
        for (const entry of this._entries) entry.isSent = false;
        this._unpause();
        void this._pump();
      }
      lost() {
        this._isOnline = false;
      }
      accepted(payload) {
        const seq = numberOf(payload.seq);
        const entry = this._entries.find((known) => known.seq === seq);
        if (entry === void 0 || seq === null) return;
        this._accepted = Math.max(this._accepted ?? 0, seq);
        this._remove(entry, "accepted");
        entry.resolve(payload);
        void this._pump();
      }
      /** The gateway's `error` about an input. */
      refused(payload) {
        const seq = numberOf(payload.seq) ?? numberOf(objectOf(payload.details).seq);
        const entry = this._entries.find((known) => known.seq === seq);
        if (entry === void 0) return;
        const code = textOf(payload.code);
        const expected = numberOf(payload.expected) ?? numberOf(objectOf(payload.details).expected);
        if (code === "expected") return this._goOnFrom(expected ?? 1);
        if (payload.retryable === true || code === "fenced") {
          return this._sendAgainFrom(entry, numberOf(payload.after_ms) ?? RETRY_MS);
        }
        if (code === "conflict") {
          this._fail(entry, new ConflictError(textOf(payload.message)));
          this._renumber(expected ?? (seq ?? 0) + 1);
        } else {
          this._fail(entry, refusalOf(code, textOf(payload.message) || code));
          this._renumber(entry.seq ?? 1);
        }
      }
      /** Over HTTP. No answer: the same again. */
      _answered(seq, answer, isAccepted, afterMs) {
        const told = answer ?? { retryable: true, after_ms: afterMs ?? RETRY_MS };
        if (isAccepted) this.accepted({ ...told, seq });
        else this.refused({ ...told, seq });
      }
      /** The connection was closed for a message that was too big: the biggest of those that were sent. False: none was. */
      tooBig() {
        const sent = this._entries.filter((entry2) => entry2.isSent).sort((a, b) => b.bytes - a.bytes);
        const entry = sent[0];
        if (entry === void 0) return false;
        this._fail(entry, new TooLargeError("closed for its size"));
        this._renumber(entry.seq ?? 1);
        return true;
      }
      /** What waits stays in the store, and is sent when the session is opened again from there. */
      close(error) {
        this._closed = error;
        this._unpause();
        for (const entry of this._entries) {
          entry.reject(error);
        }
      }
      _problemOf(entry) {
        if (this._closed !== null) return this._closed;
        if (entry.bytes > this._limitBytes) {
          return new TooLargeError(`${entry.bytes} bytes, at most ${this._limitBytes} are allowed`);
        }
        if (this._entries.length >= this._maxItems || this._bytes + entry.bytes > this._maxBytes) {
          return new QueueFullError("too many wait");
        }
        return null;
      }
      /** Number, keep, send: one after the other, as far as the window goes. */
      async _pump() {
        this._isAsked = true;
        if (this._isPumping) return;
        this._isPumping = true;
        while (this._isAsked && this._closed === null) {
          this._isAsked = false;
          this._number();
          await this._sink.keep(this._entries.map(({ seq, payload }) => ({ seq, payload })));
          this._sendDue();
        }
        this._isPumping = false;
      }
      _number() {
        if (this._accepted === null) return;
        let next = this._accepted + 1;
        for (const entry of this._entries) {
          entry.seq ??= next;
          next = Math.max(next, entry.seq + 1);
        }
      }
      _sendDue() {
        if (!this._isOnline || this._closed !== null || this._cancelPause !== null) return;
        for (const entry of this._entries.slice(0, this._sink.isDuplex() ? WINDOW : 1)) {
          if (entry.isSent || entry.seq === null) continue;
          if (!this._sink.send(entry.seq, entry.payload, this._answered.bind(this, entry.seq))) return;
          entry.isSent = true;
          this._tell(entry, "sent");
        }
      }
      _sendAgainFrom(entry, afterMs) {
        for (const later of this._entries.slice(this._entries.indexOf(entry))) later.isSent = false;
        this._unpause();
        this._cancelPause = this._platform.after(afterMs, () => {
          this._cancelPause = null;
          void this._pump();
        });
      }
      /** The gateway says which number comes next: one of ours is sent again, else all get new ones. */
      _goOnFrom(expected) {
        const entry = this._entries.find((known) => known.seq === expected);
        if (entry !== void 0) {
          if (this._cancelPause === null) this._sendAgainFrom(entry, RETRY_MS / 2);
          return;
        }
        this._renumber(expected);
      }
      /** None of those that are left was accepted: contiguous numbers make sure of it. */
      _renumber(from) {
        this._accepted = from - 1;
        for (const entry of this._entries) {
          entry.seq = null;
          entry.isSent = false;
        }
        void this._pump();
      }
      _fail(entry, error) {
        this._remove(entry, "failed");
        entry.reject(error);
      }
      _remove(entry, status) {
        this._entries.splice(this._entries.indexOf(entry), 1);
        this._bytes -= entry.bytes;
        this._tell(entry, status);
      }
      _tell(entry, status) {
        this._sink.status({ seq: entry.seq, status, payload: entry.payload });
      }
      _unpause() {
        this._cancelPause?.();
        this._cancelPause = null;
      }
    };
    none2 = () => void 0;
  }
});

// src/requests.ts
var MAX_PENDING, RETRY_MS2, ID_BYTES, Requests;
var init_requests = __esm({
  "src/requests.ts"() {
    "use strict";
    init_errors();
    init_messages();
    init_refusal();
    MAX_PENDING = 64;
    RETRY_MS2 = 500;
    ID_BYTES = 8;
    Requests = class {
      constructor(_platform, _send) {
        this._platform = _platform;
        this._send = _send;
        this.isPaused = false;
        this._pending = /* @__PURE__ */ new Map();
        this._timers = /* @__PURE__ */ new Set();
        this._closed = null;
        this._goOn = () => void 0;
      }
      ask(kind, fields) {
        if (kind === "pause" || kind === "resume") this.isPaused = kind === "pause";
        if (kind === "resume") this._goOn();
        if (this._closed !== null) return Promise.reject(this._closed);
        if (this._pending.size >= MAX_PENDING) return Promise.reject(new QueueFullError("too many wait"));
        const id = this._platform.randomHex(ID_BYTES);
        const promise = new Promise((resolve, reject) => {
          this._pending.set(id, { payload: { kind, ...fields, id }, resolve, reject });
        });
        promise.catch(() => void 0);
        this._say(id);
        return promise;
      }
      /** Until nothing is paused; for what is paused by not asking for more. */
      async unpaused() {
        if (!this.isPaused || this._closed !== null) return;
        await new Promise((resolve) => {
          const before = this._goOn;
          this._goOn = () => {
            before();
            resolve();
          };
        });
      }
      /** A connection is live: everything that is open is said again. */
      welcome() {
        const kinds2 = [...this._pending.values()].map(({ payload }) => payload.kind);
        if (this.isPaused && !kinds2.includes("pause") && !kinds2.includes("resume")) {
          this._send({ kind: "pause" }, () => void 0);
        }
        for (const id of this._pending.keys()) this._say(id);
      }
      /** An `accepted` or `error` of the gateway. One that answers nothing of ours changes nothing. */
      settle(id, payload, isAccepted) {
        const request = this._pending.get(id);
        if (request === void 0) return;
        const passes = payload.retryable === true || payload.code === "fenced";
        if (!isAccepted && passes) return this._again(id, numberOf(payload.after_ms));
        this._pending.delete(id);
        if (isAccepted) request.resolve(payload);
        else request.reject(refusalOf(textOf(payload.code), textOf(payload.message) || "refused"));
      }
      /** Say it once more, soon. */
      _again(id, afterMs) {
        const cancel = this._platform.after(afterMs ?? RETRY_MS2, () => {
          this._timers.delete(cancel);
          this._say(id);
        });
        this._timers.add(cancel);
      }
      close(error) {
        this._closed = error;
        this._goOn();
        for (const cancel of this._timers) cancel();
        for (const { reject } of this._pending.values()) reject(error);
        this._pending.clear();
      }
      _say(id) {
        const request = this._pending.get(id);
        if (request === void 0 || this._closed !== null) return;
        this._send(request.payload, (answer, isAccepted, afterMs) => {
          if (answer === null) this._again(id, afterMs);
          else this.settle(id, answer, isAccepted);
        });
      }
    };
  }
});

// src/uplink.ts
function tell(reply, answered) {
  const { refusal, status, body, afterMs } = reply;
  if (refusal === null) return answered(status === 0 ? null : body, status !== 0, null);
  const isRetryable = RETRYABLE.includes(status) || status >= 500 || status === 401;
  if (isRetryable) return answered(null, false, afterMs);
  answered({ ...refusal.details, code: refusal.code, message: refusal.message }, false, null);
}
var Uplink, RETRYABLE;
var init_uplink = __esm({
  "src/uplink.ts"() {
    "use strict";
    init_ask();
    init_http();
    init_messages();
    Uplink = class {
      constructor(_platform, _session, _timeoutMs, _client, _live) {
        this._platform = _platform;
        this._session = _session;
        this._timeoutMs = _timeoutMs;
        this._client = _client;
        this._live = _live;
        this._posts = Promise.resolve();
        this._stop = new AbortController();
      }
      /** False when nothing is live. */
      input(seq, payload, answered) {
        const live = this._live();
        if (live === null) return false;
        if (live.isDuplex) return live.send(JSON.stringify({ type: "text", seq, payload }));
        this._post(live, "input", { client: this._client(), seq, payload }, answered);
        return true;
      }
      /** Nothing happens when nothing is live: it is said again on the next connection. */
      control(payload, answered) {
        const live = this._live();
        if (live === null) return;
        const { kind } = payload;
        if (live.name === "poll" && (kind === "pause" || kind === "resume")) answered({ what: kind }, true, null);
        else if (live.isDuplex) live.send(control(payload));
        else this._post(live, "control", { client: this._client(), ...payload }, answered);
      }
      close() {
        this._stop.abort();
      }
      /** One after the other: inputs must come in the order of their numbers. */
      _post(live, what, body, answered) {
        this._posts = this._posts.then(async () => {
          if (this._stop.signal.aborted) return;
          const url = sessionUrl(live.url, this._session, what);
          const { signal } = this._stop;
          const reply = await ask(this._platform, { url, token: live.token, timeoutMs: this._timeoutMs, body, signal });
          if (!signal.aborted) tell(reply, answered);
        });
      }
    };
    RETRYABLE = [408, 425, 429];
  }
});

// src/speech.ts
var Speech;
var init_speech = __esm({
  "src/speech.ts"() {
    "use strict";
    init_input_queue();
    init_messages();
    init_requests();
    init_uplink();
    Speech = class {
      constructor(platform, settings, sink) {
        const { session, timing, queueItems, queueBytes } = settings;
        const uplink = new Uplink(platform, session, timing.connectTimeout, sink.client, sink.live);
        this._uplink = uplink;
        this.requests = new Requests(platform, (payload, answered) => uplink.control(payload, answered));
        this.queue = new InputQueue(platform, queueItems, queueBytes, {
          send: (seq, payload, answered) => uplink.input(seq, payload, answered),
          isDuplex: () => sink.live()?.isDuplex === true,
          keep: sink.keep,
          status: sink.status
        });
      }
      /** A connection is live: whatever is not settled is said again. */
      welcome(payload) {
        this.queue.welcome(numberOf(payload.input_seq), numberOf(objectOf(payload.limits).message_bytes));
        this.requests.welcome();
      }
      /** An `accepted` or `error` frame that says what it answers. */
      answered(payload, isAccepted) {
        if (payload.what !== "input") this.requests.settle(textOf(payload.id), payload, isAccepted);
        else if (isAccepted) this.queue.accepted(payload);
        else this.queue.refused(payload);
      }
      close(error) {
        this.requests.close(error);
        this._uplink.close();
        this.queue.close(error);
      }
    };
  }
});

// src/event_source.ts
function openEventSource(platform, EventSource, request, sink) {
  let source = null;
  let isOver = false;
  const close = () => {
    isOver = true;
    source?.close();
  };
  const end = (...ending) => {
    if (isOver) return;
    close();
    sink.ended(...ending);
  };
  const take = (data) => {
    if (isOver) return;
    sink.heard();
    try {
      sink.frame(readJson(data), data.length);
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error;
      end(broken(error.message));
    }
  };
  const open = (ticket) => {
    if (isOver) return;
    const query = { ...request.query, sdk: "1", ...ticket !== null && { ticket } };
    source = new EventSource(sessionUrl(request.base, request.settings.session, "events", query));
    source.onerror = () => end(broken("the connection broke"));
    source.addEventListener("open", () => sink.opened());
    source.addEventListener("close", ({ data }) => {
      const { code, reason } = objectOf(readJson(data));
      end({ kind: "closed", code: numberOf(code) ?? 1011, reason: textOf(reason) });
    });
    for (const name of NAMES) source.addEventListener(name, ({ data }) => take(data));
  };
  if (request.token === null) open(null);
  else void ticketFor(platform, request).then((ticket) => ticket ? open(ticket) : end(broken("no ticket")));
  return { name: "sse", isDuplex: false, send: () => false, close };
}
async function ticketFor(platform, { base, settings, token }) {
  const { session, timing } = settings;
  const url = `${base}/v1/tickets`;
  const { body } = await ask(platform, { url, token, timeoutMs: timing.connectTimeout, body: { session } });
  return textOf(body.ticket);
}
var NAMES;
var init_event_source = __esm({
  "src/event_source.ts"() {
    "use strict";
    init_ask();
    init_endings();
    init_http();
    init_messages();
    NAMES = [
      "message",
      "welcome",
      "gap",
      "forked",
      "snapshot",
      "ask_open",
      "reconnect_later",
      "expiring",
      "rhythm",
      "state",
      "relay_error"
    ];
  }
});

// src/sse.ts
function openSse(platform, request, sink) {
  if (platform.EventSource) return openEventSource(platform, platform.EventSource, request, sink);
  const stop = new AbortController();
  void read(platform, request, sink, stop.signal).then((ending) => {
    if (!stop.signal.aborted && ending !== null) sink.ended(ending);
    stop.abort();
  });
  return { name: "sse", isDuplex: false, send: () => false, close: () => stop.abort() };
}
async function read(platform, request, sink, signal) {
  const url = sessionUrl(request.base, request.settings.session, "events", { ...request.query, sdk: "1" });
  try {
    if (platform.fetch === null) return broken(NO_GATEWAY);
    const response = await platform.fetch(url, requestInit(request.token, signal, "text/event-stream"));
    if (!response.ok) return endingOf(await readReply(response));
    if (!response.headers.get("Content-Type")?.startsWith("text/event-stream") || response.body === null) {
      void response.body?.cancel();
      return broken(NO_GATEWAY);
    }
    sink.opened();
    return await readEvents(response.body.getReader(), sink, signal);
  } catch (error) {
    if (signal.aborted) return null;
    return broken(error instanceof BadFrame ? error.message : "the connection broke");
  }
}
async function readEvents(reader, sink, signal) {
  const decoder2 = new TextDecoder("utf-8", { ignoreBOM: true });
  let close = null;
  const parser = new EventParser((name, data) => {
    if (signal.aborted || close !== null) return;
    const value = readJson(data);
    if (name !== "close") return sink.frame(value, data.length);
    const { code, reason } = objectOf(value);
    close = { code: numberOf(code) ?? 1011, reason: textOf(reason) };
  });
  for (; ; ) {
    await sink.room();
    const { done, value } = await reader.read();
    if (signal.aborted) return null;
    if (done) break;
    sink.heard();
    parser.push(decoder2.decode(value, { stream: true }));
    if (close !== null) break;
  }
  void reader.cancel().catch(() => void 0);
  return close === null ? broken("the connection broke") : { kind: "closed", ...close };
}
var MAX_EVENT_CHARS, EventParser;
var init_sse = __esm({
  "src/sse.ts"() {
    "use strict";
    init_ask();
    init_endings();
    init_event_source();
    init_http();
    init_messages();
    MAX_EVENT_CHARS = 8 * 1024 * 1024;
    EventParser = class {
      constructor(_onEvent) {
        this._onEvent = _onEvent;
        this._rest = "";
        this._isFirst = true;
        this._afterCr = false;
        this._name = "";
        this._data = [];
        this._size = 0;
      }
      push(text) {
        if (this._isFirst && text) {
          this._isFirst = false;
          if (text.startsWith("\uFEFF")) text = text.slice(1);
        }
        if (this._afterCr && text) {
          this._afterCr = false;
          if (text.startsWith("\n")) text = text.slice(1);
        }
        const lines = (this._rest + text).split(/\r\n|\r|\n/);
        this._rest = lines.pop() ?? "";
        this._afterCr = text.endsWith("\r");
        for (const line of lines) this._line(line);
        if (this._rest.length + this._size > MAX_EVENT_CHARS) throw new BadFrame("an event without end");
      }
      _line(line) {
        if (line === "") return this._dispatch();
        const colon = line.indexOf(":");
        if (colon === 0) return;
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
        if (field === "event") this._name = value;
        if (field === "data") {
          this._data.push(value);
          this._size += value.length;
        }
      }
      _dispatch() {
        const { _name: name, _data: data } = this;
        [this._name, this._data, this._size] = ["", [], 0];
        const text = data.join("\n");
        if (text !== "") this._onEvent(name || "message", text);
      }
    };
  }
});

// src/later.ts
var later_exports = {};
__export(later_exports, {
  Recovery: () => Recovery,
  Speech: () => Speech,
  explained: () => explained,
  openPoll: () => openPoll,
  openSse: () => openSse
});
var init_later = __esm({
  "src/later.ts"() {
    "use strict";
    init_explain();
    init_poll();
    init_recovery();
    init_speech();
    init_sse();
  }
});

// src/index.ts
init_errors();

// src/platform.ts
function defaultPlatform() {
  const scope = globalThis;
  return {
    now: () => performance.now(),
    wallNow: () => Date.now(),
    after: (ms, fn) => {
      const timer = setTimeout(fn, ms);
      return () => clearTimeout(timer);
    },
    random: Math.random,
    randomHex: (bytes) => hex(crypto.getRandomValues(new Uint8Array(bytes))),
    sha256: async (data) => {
      if (!crypto.subtle) return (await Promise.resolve().then(() => (init_digests(), digests_exports))).sha256(data);
      return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", data)));
    },
    WebSocket: scope.WebSocket ?? null,
    EventSource: scope.ReadableStream ? null : scope.EventSource ?? null,
    fetch: scope.fetch ? (url, init) => fetch(url, init) : null,
    isOnline: () => scope.navigator?.onLine !== false,
    onPage: (listener) => listenToPage(scope, listener),
    lock: async (name) => scope.navigator?.locks ? webLock(scope.navigator.locks, name).catch(() => none) : ownLock(name)
  };
}
var taken = /* @__PURE__ */ new Set();
function ownLock(name) {
  if (taken.has(name)) return null;
  taken.add(name);
  return () => taken.delete(name);
}
function listenToPage(scope, listener) {
  const { document } = scope;
  const onVisibility = () => listener(document?.visibilityState === "hidden" ? "hidden" : "visible");
  const handlers = {
    online: () => listener("online"),
    offline: () => listener("offline"),
    pageshow: (event) => event.persisted && listener("restored"),
    pagehide: () => listener("leaving")
  };
  document?.addEventListener("visibilitychange", onVisibility);
  for (const [name, handler] of Object.entries(handlers)) scope.addEventListener?.(name, handler);
  return () => {
    document?.removeEventListener("visibilitychange", onVisibility);
    for (const [name, handler] of Object.entries(handlers)) scope.removeEventListener?.(name, handler);
  };
}
async function webLock(locks, name) {
  return new Promise((resolve) => {
    const held = locks.request(name, { ifAvailable: true }, (lock) => {
      if (lock === null) return resolve(null);
      return new Promise((release) => resolve(release));
    });
    held.catch(() => resolve(none));
  });
}
var none = () => void 0;
var hex = (data) => [...data].map((byte) => byte.toString(16).padStart(2, "0")).join("");

// src/acks.ts
var Acks = class {
  /** `send`: to the connection, if it is on the cursor's line. */
  constructor(_platform, _ackBytes, _ackAfterMs, _send) {
    this._platform = _platform;
    this._ackBytes = _ackBytes;
    this._ackAfterMs = _ackAfterMs;
    this._send = _send;
    this._applied = null;
    this._bytes = 0;
    this._cancelTimer = null;
  }
  note(cursor, bytes) {
    this._applied = cursor;
    this._bytes += bytes;
    if (this._bytes >= this._ackBytes) this.flush();
    else this._cancelTimer ??= this._platform.after(this._ackAfterMs, () => this.flush());
  }
  flush() {
    this.stop();
    if (this._applied !== null) this._send(this._applied);
    this._applied = null;
    this._bytes = 0;
  }
  stop() {
    this._cancelTimer?.();
    this._cancelTimer = null;
  }
};

// src/attempt.ts
var MAX_RETRY = 1e3;
async function tokenInTime(platform, credentials, timeoutMs) {
  let cancel = () => void 0;
  const late = new Promise((resolve) => {
    cancel = platform.after(timeoutMs, () => resolve(void 0));
  });
  const token = await Promise.race([credentials.next(), late]).catch(() => void 0);
  cancel();
  return token;
}
function queryOf({ from, heartbeat, rhythm }, { name, client, cursor, replaces, retry }) {
  return {
    client,
    ...cursor === null ? { from } : { cursor },
    ...name === "websocket" && { ack: "1" },
    ...replaces !== null && { replaces },
    ...heartbeat !== null && { heartbeat: String(heartbeat / 1e3) },
    ...retry > 0 && { retry: String(Math.min(retry, MAX_RETRY)) },
    ...rhythm && { rhythm: "1" }
  };
}

// src/connection.ts
init_endings();

// src/load_later.ts
var loading = null;
function loadLater() {
  loading ??= Promise.resolve().then(() => (init_later(), later_exports)).catch((error) => {
    loading = null;
    throw error;
  });
  return loading;
}

// src/connection.ts
init_messages();

// src/probe.ts
var LATE_MS = 1e3;
var MAX_ASKED = 3;
var SAMPLE_MS = 1e4;
var SAMPLE_BAD_MS = 2500;
var COMMENT_MS = 15e3;
var Pulse = class {
  constructor(_platform, _isDuplex, _timing, _sink) {
    this._platform = _platform;
    this._isDuplex = _isDuplex;
    this._timing = _timing;
    this._sink = _sink;
    /** It is us who do not read. */
    this.isHeld = false;
    this._isSampledOften = false;
    this._isStreaming = false;
    this._askedAt = null;
    this._asked = 0;
    this._cancelTimer = () => void 0;
    this._isStopped = false;
    this._heardAt = this._sentAt = this._lastAskedAt = _platform.now();
    this._schedule();
  }
  get silentMs() {
    return this._platform.now() - this._heardAt;
  }
  heard() {
    this._heardAt = this._platform.now();
    this._asked = 0;
  }
  sent() {
    this._sentAt = this._platform.now();
  }
  pong() {
    if (this._askedAt === null) return;
    const askedAt = this._askedAt;
    this._askedAt = null;
    this._sink.rtt(this._platform.now() - askedAt);
    this._schedule();
  }
  sampleOften(isOften) {
    if (isOften === this._isSampledOften) return;
    this._isSampledOften = isOften;
    this._schedule();
  }
  /** In the middle of a run silence is suspicious sooner. */
  streaming(isStreaming) {
    if (isStreaming === this._isStreaming) return;
    this._isStreaming = isStreaming;
    this._schedule();
  }
  /** Ask now. */
  probe() {
    if (this._isDuplex && !this._isStopped) this._ask();
  }
  stop() {
    this._isStopped = true;
    this._cancelTimer();
  }
  _ask() {
    this._askedAt = this._lastAskedAt = this._sentAt = this._platform.now();
    this._asked += 1;
    this._sink.ping();
    this._schedule();
  }
  _schedule() {
    this._cancelTimer();
    if (this._isStopped) return;
    const due = this._due();
    const ms = Math.max(10, due - this._platform.now());
    const wallDue = this._platform.wallNow() + ms;
    this._cancelTimer = this._platform.after(ms, () => {
      const lateMs = Math.max(this._platform.now() - due, this._platform.wallNow() - wallDue);
      this._check(lateMs > LATE_MS);
      this._schedule();
    });
  }
  _due() {
    const { probeTimeoutMs, heartbeatMs, keepAliveMs, runQuietMs } = this._timing;
    if (!this._isDuplex) return this._heardAt + this._silenceMs;
    if (this._askedAt !== null) return this._askedAt + probeTimeoutMs;
    let due = this._heardAt + (this._isStreaming ? Math.min(runQuietMs, heartbeatMs) : heartbeatMs);
    if (keepAliveMs !== null) due = Math.min(due, this._sentAt + keepAliveMs);
    if (this._heardAt > this._lastAskedAt) due = Math.min(due, this._lastAskedAt + this._sampleMs);
    return due;
  }
  get _sampleMs() {
    return this._isSampledOften ? SAMPLE_BAD_MS : SAMPLE_MS;
  }
  get _silenceMs() {
    return Math.max(COMMENT_MS, this._timing.heartbeatMs) + 2 * this._timing.probeTimeoutMs;
  }
  _check(isLate) {
    const now = this._platform.now();
    if (!this._isDuplex) {
      if (this.isHeld) this.heard();
      if (now - this._heardAt < this._silenceMs) return;
      if (isLate && this._asked++ < MAX_ASKED) this._heardAt = now - this._silenceMs + this._timing.probeTimeoutMs;
      else this._die();
      return;
    }
    if (this._askedAt === null) {
      if (now >= this._due()) this._ask();
      return;
    }
    if (now - this._askedAt < this._timing.probeTimeoutMs) return;
    if (this._heardAt > this._askedAt) {
      this._askedAt = null;
    } else if (isLate && this._asked < MAX_ASKED) {
      this._ask();
    } else {
      this._die();
    }
  }
  _die() {
    this.stop();
    this._sink.dead();
  }
};

// src/websocket.ts
init_endings();
init_http();
init_messages();
var SUBPROTOCOL = "relayrouter.v1";
var ITEM = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
var OPEN = 1;
function openWebSocket(platform, request, sink) {
  const { token } = request;
  const fitsItem = token !== null && ITEM.test(token);
  const protocols = fitsItem ? [SUBPROTOCOL, `bearer.${token}`] : [SUBPROTOCOL];
  let socket = null;
  let wasOpen = false;
  const detach = () => {
    if (socket === null) return null;
    const old = socket;
    socket = null;
    old.onopen = old.onmessage = old.onclose = null;
    old.onerror = ignore;
    return old;
  };
  const close = (isDead) => {
    const old = detach();
    try {
      if (isDead && old?.terminate) old.terminate();
      else old?.close(1e3);
    } catch {
    }
  };
  if (platform.WebSocket === null) {
    queueMicrotask(() => sink.ended(broken("no WebSocket here")));
    return { name: "websocket", isDuplex: true, send: () => false, close: () => void 0 };
  }
  socket = new platform.WebSocket(socketUrl(request.base, request.settings.session, request.query), protocols);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    wasOpen = true;
    if (token !== null && !fitsItem) send(JSON.stringify({ type: "control", payload: { kind: "auth", token } }));
    sink.opened();
  };
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") return sink.heard();
    let envelope;
    try {
      envelope = readJson(data);
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error;
      close(false);
      return sink.ended(broken(error.message));
    }
    sink.frame(envelope, data.length);
  };
  socket.onerror = ignore;
  socket.onclose = ({ code, reason }) => {
    detach();
    if (!wasOpen) return sink.ended(broken("the upgrade failed"));
    sink.ended(code === 1005 || code === 1006 ? broken("the connection broke") : { kind: "closed", code, reason });
  };
  function send(text) {
    if (socket?.readyState !== OPEN) return false;
    socket.send(text);
    return true;
  }
  return { name: "websocket", isDuplex: true, send, close };
}
var ignore = () => void 0;

// src/connection.ts
async function openerOf(name) {
  const { openSse: openSse2, openPoll: openPoll2 } = await loadLater();
  return name === "sse" ? openSse2 : openPoll2;
}
var PING = JSON.stringify({ type: "control", payload: { kind: "ping" } });
var DEFAULT_HEARTBEAT_MS = 2e4;
var Connection = class {
  constructor(_platform, _settings, _owner, _onEnd, name, url, token) {
    this._platform = _platform;
    this._settings = _settings;
    this._owner = _owner;
    this._onEnd = _onEnd;
    this.name = name;
    this.url = url;
    /** The gateway's id for it; null before the welcome. */
    this.id = null;
    /** `<epoch>.<fork>` that its frames are on. */
    this.line = "";
    this.start = null;
    this.parts = [];
    this.isWelcome = false;
    /** Something beside the welcome was heard on it. */
    this.isProven = false;
    /** Somebody was there: its transport was opened, or the gateway could be asked why it was not. */
    this.isAnswered = false;
    this.isOver = false;
    this.welcomedAt = 0;
    this._channel = null;
    this._pulse = null;
    this._settle = () => void 0;
    this._openFailed = () => this._end(broken("could not be opened"));
    this.#token = token;
  }
  /** Not for anybody who prints this. */
  #token;
  get token() {
    return this.#token;
  }
  /** Null when it is welcome; else how it ended before. */
  open(request) {
    return new Promise((resolve) => {
      const cancel = this._platform.after(
        request.settings.timing.connectTimeout,
        () => this._end(broken("no answer in time"))
      );
      this._settle = (ending) => {
        cancel();
        resolve(ending);
      };
      if (this.name === "websocket") this._openBy(openWebSocket, request);
      else void openerOf(this.name).then((open) => this._openBy(open, request), this._openFailed);
    });
  }
  _openBy(open, request) {
    if (this.isOver) return;
    try {
      this._channel = open(this._platform, request, this);
    } catch {
      this._openFailed();
    }
  }
  get isDuplex() {
    return this.name === "websocket";
  }
  get silentMs() {
    return this._pulse?.silentMs ?? 0;
  }
  send(text) {
    const isSent = !this.isOver && this._channel?.send(text) === true;
    if (isSent) this._pulse?.sent();
    return isSent;
  }
  probe() {
    this._pulse?.probe();
  }
  sampleOften(isOften) {
    this._pulse?.sampleOften(isOften);
  }
  streaming(isStreaming) {
    this._pulse?.streaming(isStreaming);
  }
  /** Let go of it: whatever its transport does later is not heard. */
  close() {
    if (!this.isOver) this._finish(broken("closed"));
  }
  // ---- what its channel says ---------------------------------------------------------------------------------------
  opened() {
    this.isAnswered = true;
  }
  heard() {
    this._pulse?.heard();
  }
  frame(envelope, bytes) {
    if (this.isOver) return;
    this._pulse?.heard();
    if (this.isWelcome) this.isProven = true;
    try {
      this._owner.frame(this, envelope, bytes);
    } catch (error) {
      this._end(this._owner.endingOf(error));
    }
  }
  ended(ending) {
    this._end(ending);
  }
  async room() {
    if (!this.isWelcome) return;
    if (this._pulse) this._pulse.isHeld = true;
    await this._owner.room(this);
    if (this._pulse) this._pulse.isHeld = false;
    this.heard();
  }
  // ---- what its frames say -----------------------------------------------------------------------------------------
  /** Also the repeated welcomes of a long poll. */
  welcomed(payload) {
    this.id = textOf(payload.connection) || this.id;
    if (this.isWelcome) return;
    this.isWelcome = true;
    this.welcomedAt = this._platform.now();
    const told = numberOf(payload.heartbeat);
    const timing = {
      heartbeatMs: this._settings.heartbeat ?? (told === null ? DEFAULT_HEARTBEAT_MS : told * 1e3),
      keepAliveMs: this._settings.keepAlive,
      probeTimeoutMs: this._settings.timing.probeTimeout,
      runQuietMs: this._settings.timing.runQuiet
    };
    if (this.name !== "poll") {
      this._pulse = new Pulse(this._platform, this.isDuplex, timing, {
        ping: () => this.send(PING),
        dead: () => {
          this._channel?.close(true);
          this._end(broken("it fell silent"));
        },
        rtt: (ms) => this._owner.rtt(ms)
      });
    }
    this._settle(null);
  }
  pong() {
    this.isProven = true;
    this._pulse?.pong();
  }
  _end(ending) {
    if (this.isOver) return;
    this._finish(ending);
    if (this.isWelcome) this._onEnd(this, ending);
  }
  _finish(ending) {
    this.isOver = true;
    this._pulse?.stop();
    this._channel?.close(false);
    this._settle(ending);
  }
};

// src/conductor.ts
init_endings();
init_errors();

// src/states.ts
var CHANNELS = ["websocket", "sse", "poll"];

// src/ladder.ts
var SPREAD = 0.25;
var Ladder = class {
  constructor(_choice, _maxFailures, _climbAfterMs, _random) {
    this._choice = _choice;
    this._maxFailures = _maxFailures;
    this._climbAfterMs = _climbAfterMs;
    this._random = _random;
    this._failures = 0;
    this._target = 0;
    this._rung = _choice === "auto" ? 0 : CHANNELS.indexOf(_choice);
  }
  get channel() {
    return CHANNELS[this._rung] ?? "websocket";
  }
  /** What a climb tries: the best one, then those below it; null at the top, or where the application has chosen. */
  get target() {
    return this._choice === "auto" && this._rung > 0 ? CHANNELS[this._target] ?? null : null;
  }
  /** A climb failed: when to try the next rung, or all again. */
  missed() {
    this._target = (this._target + 1) % Math.max(1, this._rung);
    return this._target > 0 ? 0 : this.climbDelayMs();
  }
  /** The transport failed although somebody is there: where nobody answers at all, nothing is known about the rungs. */
  failed() {
    this._failures += 1;
    if (this._choice !== "auto" || this._failures < this._maxFailures) return;
    this._failures = 0;
    this._rung = (this._rung + 1) % CHANNELS.length;
  }
  /** The connection was heard: failures are no longer in a row. */
  proved() {
    this._failures = 0;
  }
  /** By make before break: this one is live now. */
  moveTo(channel) {
    this._target = 0;
    this._rung = CHANNELS.indexOf(channel);
    this._failures = 0;
  }
  /** When to climb, counted from now; Infinity when there is nowhere to. */
  climbDelayMs() {
    if (this.target === null) return Infinity;
    return this._climbAfterMs * (1 - SPREAD + 2 * SPREAD * this._random());
  }
};

// src/overlap.ts
var PARK_MS = 1e3;
var Overlap = class {
  constructor(_platform, _overlapMs) {
    this._platform = _platform;
    this._overlapMs = _overlapMs;
    this._predecessor = null;
    this._cancelTimer = none3;
    this._isHeld = false;
    this._onParked = none3;
    this._goOn = none3;
  }
  /** The server closes it when its successor is live; if not, we do. */
  letGo(old) {
    this.close();
    this._predecessor = old;
    this._cancelTimer = this._platform.after(this._overlapMs, () => old.close());
  }
  close() {
    this._cancelTimer();
    this._predecessor?.close();
  }
  /** No long poll goes out until `release`: one that came later than what is about to be opened would take over from it. */
  async hold(current) {
    this._isHeld = true;
    if (current?.name !== "poll") return;
    let cancel = none3;
    await new Promise((resolve) => {
      this._onParked = resolve;
      cancel = this._platform.after(PARK_MS, resolve);
    });
    cancel();
  }
  release() {
    this._isHeld = false;
    this._goOn();
  }
  /** Resolves when the next long poll may go out. */
  async mayPoll() {
    if (!this._isHeld) return;
    this._onParked();
    await new Promise((resolve) => {
      this._goOn = resolve;
    });
  }
};
function none3() {
}

// src/backoff.ts
var MAX_EXPONENT = 30;
var SPREAD2 = 0.25;
var Backoff = class {
  constructor(_baseMs, _maxMs, _random) {
    this._baseMs = _baseMs;
    this._maxMs = _maxMs;
    this._random = _random;
    /** Failures since the last reset. */
    this.attempt = 0;
  }
  reset() {
    this.attempt = 0;
  }
  /** The wait before the next attempt; counts one failure. Never below `atLeastMs`, and then at most a quarter above. */
  nextDelayMs(atLeastMs = 0) {
    const ceiling = Math.min(this._maxMs, this._baseMs * 2 ** Math.min(this.attempt, MAX_EXPONENT));
    this.attempt += 1;
    return atLeastMs > 0 ? spread(atLeastMs, this._random) : this._random() * ceiling;
  }
};
function spread(ms, random) {
  return ms * (1 + SPREAD2 * random());
}

// src/schedule.ts
var SOON_MS = 500;
var OFFLINE_MS = 3e4;
var Schedule = class {
  constructor(_platform, baseMs, maxMs) {
    this._platform = _platform;
    this._notBefore = 0;
    this._replaceAt = Infinity;
    this._slotAt = 0;
    this._climbAt = Infinity;
    this._backoff = new Backoff(baseMs, maxMs, _platform.random);
  }
  /** Failures since a connection was stable. */
  get failures() {
    return this._backoff.attempt;
  }
  /** A server named a time that is still to come. */
  get hasSlot() {
    return this._slotAt > this._platform.now();
  }
  /** The live connection is to go: an attempt beside it is no mere climb. */
  get isReplacing() {
    return this._replaceAt <= this._platform.now();
  }
  /** Beside a live connection. Infinity: never. */
  dueBeside() {
    return Math.min(Math.max(this._replaceAt, this._notBefore), this._climbAt);
  }
  /** Without one. */
  dueAlone(isOffline) {
    return this._notBefore + (isOffline ? OFFLINE_MS : 0);
  }
  /** Nothing is live, and something says that an attempt may succeed now. */
  soon() {
    this._notBefore = Math.min(this._notBefore, this._platform.now() + SOON_MS * this._platform.random());
  }
  replaceNow() {
    this._replaceAt = this._platform.now();
  }
  slot(afterMs, isReplaced) {
    this._slotAt = this._platform.now() + spread(afterMs, this._platform.random);
    if (isReplaced) this._replaceAt = this._slotAt;
  }
  climb(afterMs) {
    this._climbAt = this._platform.now() + afterMs;
  }
  welcomed() {
    this._replaceAt = Infinity;
    this._slotAt = 0;
  }
  lost() {
    this._replaceAt = Infinity;
  }
  stable() {
    this._backoff.reset();
  }
  /** The next attempt waits: for its slot, or else with full jitter; never less than `afterMs`. */
  wait(afterMs) {
    const now = this._platform.now();
    const slotMs = this.hasSlot ? this._slotAt - now : -1;
    this._slotAt = 0;
    this._notBefore = now + (slotMs >= afterMs ? slotMs : this._backoff.nextDelayMs(afterMs));
  }
};

// src/signal.ts
var Signal = class {
  constructor() {
    this._go = none4;
    this._isSet = false;
  }
  /** What was signalled while nobody waited ends the next wait at once. */
  wake() {
    this._isSet = true;
    this._go();
  }
  async wait(platform, ms) {
    let cancel = none4;
    if (!this._isSet) {
      await new Promise((resolve) => {
        this._go = resolve;
        if (ms < Infinity) cancel = platform.after(ms, resolve);
      });
    }
    cancel();
    this._isSet = false;
  }
};
function none4() {
}

// src/conductor.ts
var ALIVE_MS = 1e3;
var Conductor = class {
  constructor(_platform, _settings, _credentials, _sink) {
    this._platform = _platform;
    this._settings = _settings;
    this._credentials = _credentials;
    this._sink = _sink;
    this.current = null;
    this._opening = null;
    /** May look alive to its gateway: replaced, which is no take-over by somebody else. */
    this._lastId = null;
    this._signal = new Signal();
    this._turn = 0;
    /** By what we were live last. */
    this._liveName = null;
    this._isBusy = false;
    this._isAttempting = false;
    this._isClosed = false;
    this._cause = "";
    this._shown = "";
    /** Of the connection that our attempt was to replace. */
    this._heldEnding = null;
    const { backoffBase, backoffMax, ladderFailures, climbAfter } = _settings.timing;
    this._schedule = new Schedule(_platform, backoffBase, backoffMax);
    this._ladder = new Ladder(_settings.channel, ladderFailures, climbAfter, _platform.random);
    this._overlap = new Overlap(_platform, _settings.timing.overlap);
    this._isOffline = !_platform.isOnline();
    this._url = _settings.urls[0] ?? "";
  }
  /** Until `close`, or an end that no attempt would change. */
  async run() {
    while (!this._isClosed) {
      const due = this._due();
      const now = this._platform.now();
      if (due <= now) {
        await this._attempt();
      } else {
        this._showState();
        await this._signal.wait(this._platform, due - now);
      }
    }
  }
  close() {
    this._isClosed = true;
    this._overlap.close();
    for (const connection of [this.current, this._opening]) connection?.close();
    this.current = this._opening = null;
    this._signal.wake();
  }
  // ---- what happens outside ----------------------------------------------------------------------------------------
  online() {
    this._isOffline = false;
    this.probe();
  }
  offline() {
    this._isOffline = true;
    this._showState();
    this._signal.wake();
  }
  /** The connection may be dead without knowing: ask it, or replace it when it cannot be asked. */
  probe() {
    const { current } = this;
    if (current === null) {
      if (!this._isBusy) this._schedule.soon();
    } else if (current.isDuplex) {
      current.probe();
    } else if (current.silentMs > ALIVE_MS) {
      this._schedule.replaceNow();
    }
    this._showState();
    this._signal.wake();
  }
  /** There is room again, or something else that `due` looks at has changed. */
  wake() {
    this._signal.wake();
  }
  // ---- what its connections say ------------------------------------------------------------------------------------
  /** The session has read its first welcome: from here on it is the connection. */
  welcomed(connection) {
    const old = this.current;
    this.current = connection;
    this._opening = null;
    this._heldEnding = null;
    this._schedule.welcomed();
    this._isBusy = false;
    this._credentials.accepted(connection.token);
    if (connection.name !== this._ladder.channel) this._ladder.moveTo(connection.name);
    if (this._liveName !== connection.name) this._schedule.climb(this._ladder.climbDelayMs());
    this._liveName = connection.name;
    if (old !== null) this._overlap.letGo(old);
    this._cause = "";
    this._showState();
  }
  /**
   * The server named a time for the next connection: `reconnect_later`, or an error before its close. `isReplaced`: come
   * then while the old connection still delivers.
   */
  slot(afterMs, isReplaced) {
    this._schedule.slot(afterMs, isReplaced);
    if (isReplaced) this._turn += 1;
    this._signal.wake();
  }
  reconnect(cause) {
    const { current } = this;
    if (current === null) return;
    current.close();
    this._ended(current, broken(cause));
  }
  /** Resolves when the next long poll may go out; never for one whose successor is live. */
  async mayPoll(connection) {
    await this._overlap.mayPoll();
    if (connection !== this.current) await new Promise(() => void 0);
  }
  _ended(connection, ending) {
    if (connection !== this.current || this._isClosed) return;
    this._noteHealth(connection);
    this._turn += 1;
    this.current = null;
    this._schedule.lost();
    this._lastId = isClosedByServer(ending) ? null : connection.id;
    this._sink.lost();
    if (this._isAttempting) this._heldEnding = ending;
    else this._handle(ending, connection);
    this._signal.wake();
  }
  // ---- one attempt -------------------------------------------------------------------------------------------------
  async _attempt() {
    this._isAttempting = true;
    const isClimb = this.current !== null && !this._schedule.isReplacing;
    if (this.current !== null) this._noteHealth(this.current);
    this._url = this._settings.urls[this._turn % this._settings.urls.length] ?? this._url;
    this._showState();
    const { _platform: platform, _settings: settings, _url: base } = this;
    const token = await tokenInTime(platform, this._credentials, settings.timing.connectTimeout);
    if (token === void 0 && !this._isClosed) {
      this._sink.error(new RelayError("no_token", "the token could not be fetched", true));
    }
    await this._overlap.hold(this.current);
    let connection = null;
    let ending = broken("no token");
    if (token !== void 0 && !this._isClosed) {
      const name = isClimb && this._ladder.target || this._ladder.channel;
      const onEnd = this._ended.bind(this);
      connection = this._opening = new Connection(platform, settings, this._sink, onEnd, name, base, token);
      const query = this._query(name);
      ending = await connection.open({ base, settings, query, token });
      if (ending?.kind === "broken" && !connection.isAnswered && !this._isClosed) {
        const later = await loadLater().catch(() => null);
        if (later !== null) ending = await later.explained(platform, settings, connection, query, ending);
      }
    }
    this._isAttempting = false;
    this._opening = null;
    this._overlap.release();
    if (this._isClosed) return;
    if (ending !== null) this._failed(connection, ending, isClimb);
    else if (this._heldEnding !== null) this._failed(connection, this._heldEnding, false);
  }
  _query(name) {
    return queryOf(this._settings, {
      name,
      client: this._sink.client(),
      cursor: this._sink.cursor(),
      replaces: this.current?.id ?? this._lastId,
      retry: this._schedule.failures
    });
  }
  _failed(connection, ending, isClimb) {
    this._turn += 1;
    const held = this._heldEnding;
    this._heldEnding = null;
    if (isClimb && this.current !== null && ending.kind !== "error") this._schedule.climb(this._ladder.missed());
    else if (held !== null && judge(held).kind === "final" && !isSuperseded(held)) this._handle(held, null);
    else this._handle(ending, connection);
  }
  // ---- after an end ------------------------------------------------------------------------------------------------
  _handle(ending, connection) {
    this._cause = causeOf(ending);
    const verdict = judge(ending);
    if (isTooBig(ending)) this._sink.tooBig();
    if (ending.kind === "broken" && connection?.isAnswered && !connection.isProven) this._ladder.failed();
    if (verdict.kind === "final") return this._finish(verdict.error);
    if (verdict.kind === "new_token") {
      const error = this._credentials.refused(connection?.token ?? null, this._cause);
      if (error !== null) return this._finish(error);
    }
    const isBusy = verdict.kind === "again" && verdict.isBusy;
    this._isBusy = isBusy || this._schedule.hasSlot;
    this._schedule.wait(verdict.kind === "again" && verdict.afterMs || 0);
  }
  _finish(error) {
    this.close();
    this._sink.finished(error);
  }
  /** Only a connection that lived and was heard starts the waits anew: one that is accepted and closed does not. */
  _noteHealth(connection) {
    if (!connection.isProven) return;
    this._ladder.proved();
    if (this._platform.now() - connection.welcomedAt >= this._settings.timing.stableAfter) this._schedule.stable();
  }
  // ---- when, and what is shown -------------------------------------------------------------------------------------
  /** When the next attempt is due; Infinity: nothing to do until somebody wakes us. */
  _due() {
    if (this.current !== null) return this._schedule.dueBeside();
    if (this._sink.isFull()) return Infinity;
    return this._schedule.dueAlone(this._isOffline);
  }
  _state() {
    if (this._isOffline) return "offline";
    if (this.current !== null) return "live";
    if (this._isAttempting) return "connecting";
    return this._isBusy ? "busy" : "waiting";
  }
  _showState() {
    if (this._isClosed) return;
    const state = this._state();
    const channel = this.current?.name ?? (state === "connecting" ? this._ladder.channel : null);
    const due = state === "live" || state === "connecting" ? Infinity : this._due();
    const retryIn = due === Infinity ? null : Math.max(0, due - this._platform.now());
    const shown = `${state} ${channel} ${due}`;
    if (shown === this._shown) return;
    this._shown = shown;
    this._sink.state({ state, channel, cause: this._cause, retryIn, url: this._url });
  }
};

// src/credentials.ts
init_errors();
var MAX_REFUSALS = 2;
var Credentials = class {
  #source;
  #current = null;
  #refused = null;
  #refusals = 0;
  constructor(source) {
    this.#source = source ?? null;
  }
  get isRenewable() {
    return typeof this.#source === "function";
  }
  /** The newest one that was fetched. */
  get current() {
    return this.#current;
  }
  /** For the next attempt. Rejects when its source fails, which is trouble that passes. */
  async next() {
    const token = typeof this.#source === "function" ? await this.#source() : this.#source;
    this.#current = token ? token.trim() : token;
    return this.#current;
  }
  /** The server refused this token: null means try again with a new one. */
  refused(token, reason) {
    this.#refused = token;
    this.#refusals += 1;
    return this.isRenewable && this.#refusals < MAX_REFUSALS ? null : new AuthError(reason);
  }
  /** The server let this token in. The same one may have been refused for what it will be refused for again. */
  accepted(token) {
    if (token !== this.#refused) this.#refusals = 0;
  }
};

// src/session.ts
init_cursor();

// src/delivery.ts
init_cursor();

// src/events.ts
var CONTENT_EVENTS = [
  "message",
  "text",
  "thinking",
  "run",
  "ask",
  "ask_resolved",
  "gap",
  "digest"
];
var Emitter = class {
  constructor() {
    this._listeners = /* @__PURE__ */ new Map();
  }
  on(name, listener) {
    const own = (event) => listener(event);
    const known = this._listeners.get(name) ?? /* @__PURE__ */ new Set();
    this._listeners.set(name, known.add(own));
    return () => known.delete(own);
  }
  has(names) {
    return names.some((name) => (this._listeners.get(name)?.size ?? 0) > 0);
  }
  emit(name, event) {
    for (const listener of [...this._listeners.get(name) ?? []]) {
      try {
        listener(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
};

// src/feed.ts
init_messages();
init_texts();
var ROOM_BYTES = 256 * 1024;
var FULL_BYTES = 4 * 1024 * 1024;
var JOIN_MS = 500;
var PLAIN = ["kind", "run", "text", "at"];
var SENTENCE_END = /[.!?…。！？\n]["'”’)\]]*\s*$/u;
var Feed = class {
  /** `onItem`: there may be something to take. */
  constructor(_platform, _isWhole, _onItem) {
    this._platform = _platform;
    this._isWhole = _isWhole;
    this._onItem = _onItem;
    this._items = [];
    this._bytes = 0;
    this._roomWaiters = [];
    this._cancelTimer = null;
  }
  get isFull() {
    return this._bytes > FULL_BYTES;
  }
  /** Age of the oldest message. */
  get behindMs() {
    return this._items[0] ? this._platform.now() - this._items[0].arrivedAt : 0;
  }
  put(frame, cursor, bytes) {
    this._items.push({ frame, cursor, bytes, arrivedAt: this._platform.now() });
    this._bytes += bytes;
    this._onItem();
  }
  /** The next one; null when there is none, or its sentence is not complete yet. */
  take() {
    const first = this._items[0];
    if (first === void 0) return null;
    const joined2 = this._isWhole() && isText(first.frame) ? this._joinable() : 1;
    if (joined2 === 0) return null;
    const items = this._items.splice(0, joined2);
    const item2 = joined2 === 1 ? first : join(items);
    this._bytes -= item2.bytes;
    if (this._bytes < ROOM_BYTES) for (const go of this._roomWaiters.splice(0)) go();
    return item2;
  }
  async room() {
    if (this._bytes >= ROOM_BYTES) await new Promise((resolve) => this._roomWaiters.push(resolve));
  }
  close() {
    this._cancelTimer?.();
    for (const go of this._roomWaiters.splice(0)) go();
  }
  /** How many of the first messages are one segment; 0: wait for more. */
  _joinable() {
    const [first] = this._items;
    let count = 0;
    for (const { frame } of this._items) {
      if (frame.kind !== first.frame.kind || frame.run !== first.frame.run || !isText(frame)) return count;
      count += 1;
      if (SENTENCE_END.test(textOf(frame.payload.text))) return count;
    }
    const left = first.arrivedAt + JOIN_MS - this._platform.now();
    if (left <= 0) return count;
    this._cancelTimer ??= this._platform.after(left, () => {
      this._cancelTimer = null;
      this._onItem();
    });
    return 0;
  }
};
var isText = ({ isControl, kind, payload }) => !isControl && trackOf(kind) !== null && Object.keys(payload).every((name) => PLAIN.includes(name));
function join(items) {
  const first = items[0];
  const last = items[items.length - 1];
  const payload = {
    ...last.frame.payload,
    ...first.frame.payload,
    text: items.map(({ frame }) => textOf(frame.payload.text)).join("")
  };
  return {
    frame: { ...last.frame, firstSeq: first.frame.firstSeq, payload },
    cursor: last.cursor,
    bytes: items.reduce((sum, item2) => sum + item2.bytes, 0),
    arrivedAt: first.arrivedAt
  };
}

// src/delivery.ts
init_messages();
init_texts();
var DONE = { done: true, value: void 0 };
var Delivery = class {
  constructor(platform, _emitter, _texts, _sink) {
    this._emitter = _emitter;
    this._texts = _texts;
    this._sink = _sink;
    /** After the last message applied; null before the first. */
    this.cursor = null;
    /** We began at a stored position: beginnings of runs are fetched. */
    this.isFilling = false;
    this._openAsks = /* @__PURE__ */ new Map();
    /** Runs that we interrupted: their text that is still on its way is not shown. */
    this._silenced = /* @__PURE__ */ new Set();
    this._isLooping = false;
    this._isDraining = false;
    this._wakeLoop = () => void 0;
    this._isOver = false;
    this._error = null;
    this._feed = new Feed(platform, _sink.isWhole, () => this.drain());
  }
  get isFull() {
    return this._feed.isFull;
  }
  get asks() {
    return [...this._openAsks.values()];
  }
  get runs() {
    return [...this._texts.runs].map(([run, { reason }]) => ({
      run,
      state: reason === null ? "open" : "ended",
      reason
    }));
  }
  put(frame, cursor, bytes) {
    this._feed.put(frame, cursor, bytes);
    this._sink.behind(this._feed.behindMs);
  }
  room() {
    return this._feed.room();
  }
  /** A loop takes what there is, else listeners do, else it waits. */
  drain() {
    if (this._isLooping) return this._wakeLoop();
    if (this._isDraining) return;
    this._isDraining = true;
    while (!this._isLooping && this._emitter.has(CONTENT_EVENTS) && this._next() !== null) ;
    this._isDraining = false;
  }
  loop() {
    if (this._isLooping) throw new Error("this session is being read by another loop");
    this._isLooping = true;
    let isStopped = false;
    const take = async () => {
      while (!isStopped) {
        const item2 = this._next();
        if (item2?.message) return { done: false, value: item2.message };
        if (item2 !== null) continue;
        if (this._isOver) {
          stop();
          if (this._error !== null) throw this._error;
          break;
        }
        await new Promise((resolve) => {
          this._wakeLoop = resolve;
        });
      }
      return DONE;
    };
    const stop = () => {
      if (isStopped) return;
      isStopped = true;
      this._isLooping = false;
      this._wakeLoop();
      this.drain();
    };
    let last = Promise.resolve();
    return {
      // One after the other, also where several are asked for at once.
      next: () => {
        const taken2 = last.then(take);
        last = taken2.catch(none5);
        return taken2;
      },
      return: async () => {
        stop();
        return DONE;
      }
    };
  }
  /** Nothing comes any more; what came can still be taken. */
  end(error) {
    this._isOver = true;
    this._error = error;
    this._feed.close();
    this.drain();
  }
  silence(run) {
    this._silenced.add(run);
  }
  /** An open ask, announced ahead of its place. */
  opened(payload) {
    const ask2 = textOf(payload.ask);
    if (ask2 === "" || this._openAsks.has(ask2)) return;
    const run = typeof payload.run === "string" ? payload.run : null;
    const known = { ask: ask2, message: textOf(payload.message), run, payload };
    this._openAsks.set(ask2, known);
    this._emitter.emit("ask", known);
  }
  // ---- one message -------------------------------------------------------------------------------------------------
  _next() {
    const item2 = this._feed.take();
    if (item2 === null) return null;
    const message = this._isSilenced(item2.frame) ? this._pass(item2) : this._apply(item2);
    this._sink.behind(this._feed.behindMs);
    this._sink.roomAgain();
    if (message !== null) this._emitter.emit("message", message);
    return { message };
  }
  _isSilenced({ kind, run }) {
    if (run === null || !this._silenced.has(run)) return false;
    if (kind === "run_end") this._silenced.delete(run);
    return trackOf(kind) !== null || kind === "tool";
  }
  _pass({ cursor, bytes }) {
    if (cursor !== null) {
      this.cursor = formatCursor(cursor);
      this._sink.applied(cursor, bytes);
    }
    return null;
  }
  _apply(item2) {
    const { frame } = item2;
    const change = this._texts.apply(frame);
    this._pass(item2);
    const message = messageOf(frame, change);
    if (change !== null) this._tellChange(change, frame);
    if (frame.isControl && frame.kind === "gap") {
      const { first, last, reason } = frame.payload;
      this._emitter.emit("gap", { first: numberOf(first) ?? 0, last: numberOf(last) ?? 0, reason: textOf(reason) });
    } else if (frame.kind === "ask") {
      this.opened(frame.payload);
    } else if (frame.kind === "ask_resolved") {
      this._resolved(frame.payload);
    }
    return message;
  }
  _tellChange({ run, track, added, begins, end }, { payload, isControl }) {
    if (begins) this._emitter.emit("run", { run, state: "open", reason: null, payload: isControl ? {} : payload });
    const known = this._texts.runs.get(run);
    if (track !== null && (added.text || added.isRewritten)) {
      this._emitter.emit(track, { run, added: added.text, isRewritten: added.isRewritten });
      if (this.isFilling && known?.[track].isWhole === false) this._sink.fill(run, known);
    }
    if (end !== null) {
      this._emitter.emit("run", { run, state: "ended", reason: known?.reason ?? null, payload: end });
      this._sink.verify(run, end);
    }
  }
  _resolved(payload) {
    const ask2 = textOf(payload.ask);
    this._openAsks.delete(ask2);
    this._emitter.emit("ask_resolved", { ask: ask2, status: textOf(payload.status), value: payload.value, payload });
  }
};
var none5 = () => void 0;
function messageOf(frame, change) {
  const { isControl, kind, run, timestamp, payload } = frame;
  if (isControl && kind === "snapshot" && run === null) return null;
  const text = change?.track ? change.added.text : textOf(payload.text);
  const [seq, firstSeq] = isControl ? [null, null] : [frame.seq, frame.firstSeq];
  return { kind, seq, firstSeq, timestamp, run, text, payload, late: payload.late === true };
}

// src/session.ts
init_errors();

// src/incoming.ts
init_endings();
init_errors();
init_messages();
var Incoming = class {
  constructor(_emitter, _credentials, _conductor, _reception, _delivery, _speaking) {
    this._emitter = _emitter;
    this._credentials = _credentials;
    this._conductor = _conductor;
    this._reception = _reception;
    this._delivery = _delivery;
    this._speaking = _speaking;
    /** The position of the log's last message, as the newest welcome told it; null before the first. */
    this.head = null;
  }
  /** Throws BadFrame, ProtocolError: what ends the connection. */
  frame(connection, envelope, bytes) {
    const frame = readFrame(envelope);
    const { kind, payload, isControl } = frame;
    if (!connection.isWelcome && kind !== "welcome" && !(isControl && kind === "error"))
      throw new BadFrame("no welcome");
    if (!isControl) {
      connection.streaming(frame.run !== null && kind !== "run_end");
      return this._reception.take(connection, frame, bytes);
    }
    switch (kind) {
      case "welcome":
        return this._welcome(connection, frame);
      case "gap":
      case "forked":
      case "snapshot":
        return this._reception.take(connection, frame, bytes);
      case "pong":
        return connection.pong();
      case "accepted":
      case "error":
        return this._answer(connection, payload, kind === "accepted");
      case "ask_open":
        return this._delivery.opened(objectOf(payload.ask));
      case "reconnect_later":
        return this._slot(connection, numberOf(payload.after_ms) ?? 0, true);
      case "expiring":
        return void this._renew(connection);
      case "rhythm":
        return this._emitter.emit("rhythm", payload);
      case "state":
        return this._emitter.emit("hook", payload);
    }
  }
  _welcome(connection, frame) {
    const { payload } = frame;
    this._reception.welcome(connection, frame);
    const isFirst = !connection.isWelcome;
    connection.welcomed(payload);
    if (!isFirst) return;
    this._conductor.welcomed(connection);
    this.head = numberOf(payload.head) ?? this.head;
    this._speaking.welcome(payload);
  }
  _answer(connection, payload, isAccepted) {
    if (payload.what !== void 0) return this._speaking.speech?.answered(payload, isAccepted);
    const afterMs = numberOf(payload.after_ms);
    if (afterMs !== null) this._slot(connection, afterMs, false);
  }
  /** A predecessor has nothing to say about our next connection. */
  _slot(connection, afterMs, isReplaced) {
    if (connection === this._conductor.current) this._conductor.slot(afterMs, isReplaced);
  }
  /** Before the token ends: in band where that is possible, else by a new connection. */
  async _renew(connection) {
    if (!this._credentials.isRenewable) return;
    if (!connection.isDuplex) return this._slot(connection, 0, true);
    const token = await this._credentials.next().catch(() => null);
    if (token !== null) connection.send(control({ kind: "auth", token }));
  }
};
function endingOfError(error) {
  if (error instanceof ProtocolError) return { kind: "error", error };
  if (error instanceof BadFrame) return broken(error.message);
  queueMicrotask(() => {
    throw error;
  });
  return broken("internal error");
}

// src/store.ts
var MemoryStore = class {
  constructor() {
    this.isShared = false;
    this._places = /* @__PURE__ */ new Map();
  }
  async load(session) {
    return this._places.get(session) ?? null;
  }
  async save(session, place) {
    this._places.set(session, place);
  }
};

// src/keeper.ts
var SAVE_AFTER_MS = 250;
var STORE_MS = 5e3;
var Keeper = class {
  constructor(_platform, _store, _session, _user, _onError) {
    this._platform = _platform;
    this._store = _store;
    this._session = _session;
    this._user = _user;
    this._onError = _onError;
    this._client = "";
    this._cursor = null;
    this._inputs = [];
    this._saving = null;
    this._isDirty = false;
    this._cancelTimer = null;
  }
  /** What was kept for this user; null when there is nothing, or it was another user's. */
  async load() {
    try {
      const saved = await this._inTime(() => this._store.load(this._session));
      return saved && (this._user === null || saved.user === this._user) ? saved : null;
    } catch {
      this._onError("the store could not be read");
      return null;
    }
  }
  get isShared() {
    return this._store.isShared;
  }
  /** From here on in memory only. */
  forsake(memory) {
    this._store = memory;
  }
  begin(client, cursor, inputs) {
    this._client = client;
    this._cursor = cursor;
    this._inputs = inputs;
  }
  moved(cursor) {
    this._cursor = cursor;
    this._isDirty = true;
    this._cancelTimer ??= this._platform.after(SAVE_AFTER_MS, () => void this.flush());
  }
  /** Resolves when they are kept (or cannot be): before they are sent. */
  async keepInputs(inputs) {
    this._inputs = inputs;
    this._isDirty = true;
    await this.flush();
  }
  /** Resolves when everything up to now is kept. */
  async flush() {
    this._cancelTimer?.();
    this._cancelTimer = null;
    while (this._saving !== null) await this._saving;
    if (!this._isDirty) return;
    this._saving = this._save();
    await this._saving;
  }
  async _save() {
    this._isDirty = false;
    const { _client: client, _user: user, _cursor: cursor, _inputs: inputs } = this;
    try {
      await this._inTime(() => this._store.save(this._session, { client, user, cursor, inputs }));
    } catch {
      this._onError("the store could not be written");
    } finally {
      this._saving = null;
    }
  }
  /** Rejects when the store throws, in whatever way, or is late. Never settles in the call itself. */
  async _inTime(act) {
    let cancel = () => void 0;
    const late = new Promise((_, reject) => {
      cancel = this._platform.after(STORE_MS, () => {
        this._store = new MemoryStore();
        reject(new Error("late"));
      });
    });
    try {
      return await Promise.race([Promise.resolve().then(act), late]);
    } finally {
      cancel();
    }
  }
};

// src/session.ts
init_messages();

// src/options.ts
init_cursor();
init_errors();
var DEFAULT_TIMING = {
  connectTimeout: 1e4,
  backoffBase: 1e3,
  backoffMax: 3e4,
  stableAfter: 1e4,
  probeTimeout: 5e3,
  runQuiet: 3e3,
  reorder: 200,
  ackBytes: 32 * 1024,
  ackAfter: 250,
  ladderFailures: 3,
  climbAfter: 6e4,
  pollWait: 25e3,
  overlap: 1e4
};
var DEFAULTS = {
  session: "",
  from: "live",
  channel: "auto",
  heartbeat: null,
  keepAlive: null,
  rhythm: false,
  user: null,
  queueItems: 64,
  queueBytes: 1024 * 1024,
  segments: "auto"
};
function readOptions(options) {
  const urls = [options.url].flat().map(checkBase);
  if (urls.length === 0) throw bad(URL_FORM);
  if (!options.session) throw bad("session is missing");
  if (options.cursor) parseCursor(options.cursor);
  const heartbeat = options.heartbeat ?? null;
  if (heartbeat !== null && !(heartbeat >= 5e3 && heartbeat <= 25e3)) {
    throw bad("heartbeat: 5000 to 25000");
  }
  if (!["auto", "websocket", "sse", "poll"].includes(options.channel ?? "auto"))
    throw bad("channel: auto, websocket, sse or poll");
  const { timing, token: _, ...given } = options;
  return { ...DEFAULTS, ...withoutHoles(given), urls, timing: { ...DEFAULT_TIMING, ...timing } };
}
var withoutHoles = (options) => Object.fromEntries(Object.entries(options).filter(([, value]) => value != null));
var URL_FORM = "url: like https://relay.example.com";
function checkBase(text) {
  let url;
  try {
    url = new URL(text.replace(/^ws/, "http"));
  } catch {
    throw bad(URL_FORM);
  }
  if (!/^https?:$/.test(url.protocol) || url.search || url.hash) throw bad(URL_FORM);
  return url.href.replace(/\/+$/, "");
}
var bad = (message) => new RelayError("bad_options", message);

// src/page.ts
var INTERVAL_MS = 5e3;
var JUMP = 2;
var PageWatch = class {
  constructor(_platform, _sink) {
    this._platform = _platform;
    this._sink = _sink;
    this._cancelTimer = () => void 0;
    this._stopListening = _platform.onPage((event) => this._on(event));
    this._watchClock();
  }
  stop() {
    this._stopListening();
    this._cancelTimer();
  }
  _on(event) {
    if (event === "visible" || event === "restored") this._sink.probe();
    else if (event === "online") this._sink.online();
    else if (event === "offline") this._sink.offline();
    else this._sink.leaving();
  }
  /** A timer that is late by more than two intervals: the machine slept, or the page was frozen. */
  _watchClock() {
    const [began, wallBegan] = [this._platform.now(), this._platform.wallNow()];
    this._cancelTimer = this._platform.after(INTERVAL_MS, () => {
      const elapsed = Math.max(this._platform.now() - began, this._platform.wallNow() - wallBegan);
      this._watchClock();
      if (elapsed - INTERVAL_MS > JUMP * INTERVAL_MS) this._sink.probe();
    });
  }
};

// src/quality.ts
var SMOOTHING = 0.3;
var BAD_RTT_MS = 800;
var FAIR_RTT_MS = 300;
var RECOVERY_MS = 1e4;
var BEHIND_MS = 2e3;
var LEAST_CHANGE = 0.1;
var Quality = class {
  constructor() {
    this.rtt = null;
    this.isDegraded = false;
    this._feedMs = 0;
    this._pageMs = 0;
    this._goodSince = null;
    this._told = null;
  }
  sample(rttMs, now) {
    this.rtt = this.rtt === null ? rttMs : this.rtt + SMOOTHING * (rttMs - this.rtt);
    this._judge(now);
  }
  /** How old the oldest message is that the application has not taken; or else that its page has not shown. */
  behind(ms, now, isFeed = false) {
    if (isFeed) this._feedMs = ms;
    else this._pageMs = ms;
    this._judge(now);
  }
  get _behindMs() {
    return Math.max(this._feedMs, this._pageMs);
  }
  current() {
    const rtt = this.rtt ?? 0;
    const isBad = rtt > BAD_RTT_MS || this._behindMs > BEHIND_MS;
    const level = isBad ? "poor" : rtt > FAIR_RTT_MS ? "fair" : "good";
    const badness = (rtt / BAD_RTT_MS) ** 2 + (this._behindMs / BEHIND_MS) ** 2;
    return { score: Math.round(100 / (1 + badness)) / 100, level, rtt: this.rtt };
  }
  /** What is worth telling since the last time; null when nothing is. */
  news() {
    const now = this.current();
    const { _told: told } = this;
    if (told && told.level === now.level && Math.abs(told.score - now.score) < LEAST_CHANGE) return null;
    this._told = now;
    return now;
  }
  _judge(now) {
    const isBad = (this.rtt ?? 0) > BAD_RTT_MS || this._behindMs > BEHIND_MS;
    if (isBad) {
      this.isDegraded = true;
      this._goodSince = null;
    } else if (this.isDegraded) {
      this._goodSince ??= now;
      if (now - this._goodSince >= RECOVERY_MS) {
        this.isDegraded = false;
        this._goodSince = null;
      }
    }
  }
};

// src/quality_watch.ts
var QualityWatch = class {
  constructor(_platform, _emitter, _live) {
    this._platform = _platform;
    this._emitter = _emitter;
    this._live = _live;
    this._quality = new Quality();
  }
  get isDegraded() {
    return this._quality.isDegraded;
  }
  current() {
    return this._quality.current();
  }
  roundTrip(ms) {
    this._quality.sample(ms, this._platform.now());
    this._tell();
  }
  /** As in Quality. */
  behind(ms, isFeed) {
    this._quality.behind(ms, this._platform.now(), isFeed);
    this._tell();
  }
  _tell() {
    this._live()?.sampleOften(this._quality.isDegraded);
    const news = this._quality.news();
    if (news !== null) this._emitter.emit("quality", news);
  }
};

// src/reception.ts
init_cursor();
init_messages();

// src/place.ts
init_cursor();
init_messages();
var Place = class {
  constructor() {
    /** After the last message received; null before the first welcome. */
    this.cursor = null;
  }
  /** Judge a message of a connection that is on `line`, and move on when it is the next. */
  offer(frame, line) {
    if (frame.seq === null || frame.firstSeq === null || this.cursor === null)
      throw new BadFrame("a message too early");
    if (line !== this.cursor.line) return "foreign";
    if (frame.seq <= this.cursor.seq) return "repeat";
    if (frame.firstSeq > this.cursor.seq + 1) return "hole";
    this.cursor = { line, seq: frame.seq };
    return "next";
  }
  /** Take over the position that a frame names; false when we are there or beyond. Throws ProtocolError. */
  follow(frame) {
    const cursor = parseCursor(frame.payload.cursor);
    if (this.cursor !== null && this.cursor.line === cursor.line && cursor.seq <= this.cursor.seq) return false;
    this.cursor = cursor;
    return true;
  }
  /** What is missing never came: go on rather than stand still. Returns the range that is lost. */
  skipTo(seq) {
    const { line, seq: here } = this.cursor ?? { line: "", seq: 0 };
    this.cursor = { line, seq };
    return { first: here + 1, last: seq };
  }
};

// src/reception.ts
var HELD_FRAMES = 256;
var Reception = class {
  constructor(_platform, _reorderMs, _sink) {
    this._platform = _platform;
    this._reorderMs = _reorderMs;
    this._sink = _sink;
    this.place = new Place();
    this._current = null;
    this._held = [];
    this._cancelTimer = null;
    this._isFetching = false;
    /** Where we connected again for the same hole. */
    this._askedAgainAt = "";
  }
  /** After the last message received; null before the first welcome. */
  get cursor() {
    return this.place.cursor && formatCursor(this.place.cursor);
  }
  get line() {
    return this.place.cursor?.line ?? "";
  }
  /** From here on it is the one that names positions. A long poll welcomes again and again. */
  welcome(source, frame) {
    const start = parseCursor(frame.payload.cursor);
    source.line = start.line;
    source.start = start;
    this._current = source;
    if (this.place.cursor === null && frame.payload.resumed !== "gap") this.place.follow(frame);
  }
  take(source, frame, bytes) {
    if (!frame.isControl) this._message(source, { frame, bytes });
    else if (frame.kind === "snapshot") this._snapshot(source, { frame, bytes });
    else if (frame.kind === "gap") this._gap(source, frame, bytes);
    else this._forked(source, frame);
  }
  /** A page of history for a hole. */
  takeHistory(source, frame, bytes) {
    const { _current: current } = this;
    this._current = source;
    this.take(source, frame, bytes);
    this._current = current;
  }
  stop() {
    this._cancelTimer?.();
    this._cancelTimer = null;
  }
  // ---- messages ----------------------------------------------------------------------------------------------------
  _message(source, sized) {
    this._flush(source, null);
    if (source === this._current && source.line !== this.line && source.start !== null) {
      this._moveTo(source.start);
    }
    const before = this.place.cursor?.seq ?? 0;
    const offer = this.place.offer(sized.frame, source.line);
    if (offer === "hole") return this._hold(sized);
    if (offer !== "next") return;
    this._deliver(sized, before);
    this._releaseHeld();
  }
  /** `before`: our position before it; what a merged frame repeats of it is not counted again. */
  _deliver({ frame, bytes }, before) {
    const firstSeq = Math.max(frame.firstSeq ?? 0, before + 1);
    this._sink.put({ ...frame, firstSeq }, this.place.cursor, bytes);
  }
  // ---- positions ---------------------------------------------------------------------------------------------------
  _snapshot(source, sized) {
    if (source !== this._current) return;
    source.parts.push(sized);
    if (sized.frame.payload.cursor === void 0) return;
    source.line = parseCursor(sized.frame.payload.cursor).line;
    if (this.place.follow(sized.frame)) this._flush(source, this.place.cursor);
    else source.parts = [];
    this._forgetHeld();
  }
  /** Texts are rebuilt when all of them are there: what we have already is not cut by a part. */
  _flush(source, cursor) {
    const parts = source.parts;
    source.parts = [];
    parts.forEach(({ frame, bytes }, i) => {
      this._sink.put(frame, i === parts.length - 1 ? cursor : null, bytes);
    });
  }
  _gap(source, frame, bytes) {
    if (source !== this._current) return;
    this._flush(source, null);
    const cursor = parseCursor(frame.payload.cursor);
    source.line = cursor.line;
    if (textOf(frame.payload.reason) === "ahead") this._moveTo(cursor);
    else if (!this.place.follow(frame)) return;
    this._sink.put(frame, this.place.cursor, bytes);
    this._forgetHeld();
  }
  /** Up to `base` the new stretch is the old one: nothing of that is taken again. */
  _forked(source, frame) {
    const cursor = parseCursor(frame.payload.cursor);
    source.line = cursor.line;
    const here = this.place.cursor;
    if (source !== this._current || here?.line === cursor.line) return;
    const base = numberOf(frame.payload.base) ?? cursor.seq;
    const seq = here !== null && here.seq <= base ? Math.max(here.seq, cursor.seq) : cursor.seq;
    this._moveTo({ line: cursor.line, seq });
  }
  _moveTo(cursor) {
    this.place.cursor = cursor;
    this._forgetHeld();
  }
  // ---- holes -------------------------------------------------------------------------------------------------------
  _hold(sized) {
    if (this._held.length >= HELD_FRAMES) return void this._fill();
    this._held.push(sized);
    this._cancelTimer ??= this._platform.after(this._reorderMs, () => {
      this._cancelTimer = null;
      void this._fill();
    });
  }
  _releaseHeld() {
    if (this._held.length === 0) return;
    this._held.sort((a, b) => (a.frame.firstSeq ?? 0) - (b.frame.firstSeq ?? 0));
    const waiting = this._held;
    this._held = [];
    for (const sized of waiting) {
      const before = this.place.cursor?.seq ?? 0;
      const offer = this.place.offer(sized.frame, this.line);
      if (offer === "next") this._deliver(sized, before);
      if (offer === "hole") this._held.push(sized);
    }
    if (this._held.length === 0) this.stop();
  }
  _forgetHeld() {
    this._held = [];
    this.stop();
  }
  /** Nothing filled the hole in time: fetch it, else connect again, else say that it is lost and go on. */
  async _fill() {
    const since = this.cursor;
    if (this._isFetching || this._held.length === 0 || since === null) return;
    this._isFetching = true;
    await this._sink.fetch(since);
    this._isFetching = false;
    this._releaseHeld();
    const first = this._held[0];
    if (first === void 0) return;
    if (this.cursor !== since) return void this._fill();
    if (this._askedAgainAt !== since) {
      this._askedAgainAt = since;
      this._forgetHeld();
      return this._sink.reconnect("a message is missing");
    }
    const lost = this.place.skipTo((first.frame.firstSeq ?? 1) - 1);
    const payload = { kind: "gap", ...lost, reason: "missing" };
    this._sink.put({ ...first.frame, isControl: true, kind: "gap", run: null, payload }, this.place.cursor, 0);
    this._releaseHeld();
  }
};

// src/recover.ts
function recoverBy(platform, emitter, texts, request) {
  return async (act) => {
    try {
      const { Recovery: Recovery2 } = await loadLater();
      return await act(new Recovery2(platform, emitter, texts, request));
    } catch {
      return void 0;
    }
  };
}

// src/speaking.ts
init_errors();

// src/own_words.ts
init_errors();
var ESCAPES = /\\(?:(ud[89a-f][0-9a-f]{2})|.)/g;
function asJson(value) {
  try {
    const text = JSON.stringify(value).replace(ESCAPES, (all, half) => half ? "\uFFFD" : all);
    const copy = JSON.parse(text);
    if (typeof copy === "object" && copy !== null && !Array.isArray(copy)) return copy;
  } catch {
  }
  throw new RefusedError("bad_request", 'not a JSON object, like {text: "Hello"}');
}

// src/speaking.ts
var MAX_WAITING = 64;
var Speaking = class {
  /** `started`: the client has its id, and `saved` is there. */
  constructor(_platform, _settings, _started, _sink) {
    this._platform = _platform;
    this._settings = _settings;
    this._started = _started;
    this._sink = _sink;
    /** Null until it is loaded. */
    this.speech = null;
    /** Of an earlier life of this page, not accepted yet. */
    this.saved = [];
    /** Of the connection that is live. */
    this._welcome = null;
    this._loading = null;
    /** What comes now must not overtake them. */
    this._waiting = 0;
    this._closed = null;
  }
  get queued() {
    return this.speech?.queue.length ?? this.saved.length;
  }
  /** All in the order of the calls, and as it is now. */
  input(payload) {
    return this._say(payload, ({ queue }, copy) => queue.add(copy));
  }
  control(kind, fields) {
    return this._say(fields, ({ requests }, copy) => requests.ask(kind, copy));
  }
  welcome(payload) {
    this._welcome = payload;
    if (this.speech !== null) this.speech.welcome(payload);
    else this._load().catch(none6);
  }
  lost() {
    this._welcome = null;
    this.speech?.queue.lost();
  }
  /** What waits, and what comes later, is rejected with it. */
  close(error) {
    this._closed = error ?? new ClosedError();
    this.speech?.close(this._closed);
  }
  _say(given, what) {
    const said = this._sayWhenLoaded(given, what);
    said.catch(none6);
    return said;
  }
  async _sayWhenLoaded(given, what) {
    const copy = asJson(given);
    if (this.speech !== null && this._waiting === 0) return what(this.speech, copy);
    if (this._waiting >= MAX_WAITING) throw new QueueFullError("too many wait");
    this._waiting += 1;
    let speech;
    try {
      speech = await this._load();
    } finally {
      this._waiting -= 1;
    }
    return what(speech, copy);
  }
  _load() {
    this._loading ??= this._tryToLoad();
    return this._loading;
  }
  /** Until it is there, or the session is closed. */
  async _tryToLoad() {
    await this._started();
    while (this._closed === null) {
      const later = await loadLater().catch(() => null);
      if (this._closed) break;
      if (later !== null) {
        const speech = new later.Speech(this._platform, this._settings, this._sink);
        speech.queue.restore(this.saved);
        this.speech = speech;
        if (this._welcome !== null) speech.welcome(this._welcome);
        return speech;
      }
      await new Promise((resolve) => this._platform.after(this._settings.timing.backoffBase, resolve));
    }
    throw this._closed;
  }
};
var none6 = () => void 0;

// src/tab_place.ts
init_cursor();
async function takePlace(platform, keeper, session, asked) {
  const saved = await keeper.load();
  const wanted = asked.client ?? saved?.client ?? freshClient(platform);
  const { client, isDuplicate, release } = await claimClient(platform, session, wanted);
  if (isDuplicate && keeper.isShared) keeper.forsake(new MemoryStore());
  const cursor = asked.cursor ?? saved?.cursor ?? null;
  const inputs = saved?.client === client ? saved.inputs : [];
  keeper.begin(client, cursor, inputs);
  return { client, cursor: savedCursor(cursor), inputs, release };
}
function savedCursor(text) {
  try {
    return parseCursor(text);
  } catch {
    return null;
  }
}
var ID_BYTES2 = 12;
var freshClient = (platform) => `js-${platform.randomHex(ID_BYTES2)}`;
async function claimClient(platform, session, client) {
  const release = await platform.lock(`relayrouter:${session}:${client}`);
  if (release !== null) return { client, isDuplicate: false, release };
  const own = freshClient(platform);
  const releaseOwn = await platform.lock(`relayrouter:${session}:${own}`);
  return { client: own, isDuplicate: true, release: releaseOwn ?? (() => void 0) };
}

// src/session.ts
init_texts();
var Session = class {
  /** Use `connect`. Throws RelayError `bad_options`. */
  constructor(options) {
    /** Why it is closed for good; null while it is not, and after `close`. */
    this.error = null;
    this._clientId = "";
    this._state = { state: "connecting", channel: null, cause: "", retryIn: null, url: "" };
    this._isClosed = false;
    this._releaseLock = () => void 0;
    this._emitter = new Emitter();
    this._texts = new RunTexts();
    const settings = readOptions(options);
    const base = options.platform ?? defaultPlatform();
    const { WebSocket = base.WebSocket, fetch: fetch2 = base.fetch } = options;
    const platform = Object.assign(Object.create(base), { WebSocket, fetch: fetch2 });
    const { timing } = settings;
    this._settings = settings;
    this._platform = platform;
    this._credentials = new Credentials(options.token);
    const fail = (message) => this._emitter.emit("error", new RelayError("store", message, true));
    const store = options.store ?? new MemoryStore();
    this._keeper = new Keeper(platform, store, settings.session, settings.user, fail);
    this._conductor = new Conductor(platform, settings, this._credentials, {
      client: () => this._clientId,
      cursor: () => this._reception.cursor,
      isFull: () => this._delivery.isFull,
      frame: (connection, envelope, bytes) => this._incoming.frame(connection, envelope, bytes),
      rtt: (ms) => this._quality.roundTrip(ms),
      room: async (connection) => {
        await this._delivery.room();
        if (connection.name !== "poll") return;
        await this._speaking.speech?.requests.unpaused();
        await this._conductor.mayPoll(connection);
      },
      endingOf: endingOfError,
      state: (event) => this._onState(event),
      lost: () => this._speaking.lost(),
      tooBig: () => void this._speaking.speech?.queue.tooBig(),
      finished: (error) => this._finish(error),
      error: (error) => this._emitter.emit("error", error)
    });
    this._speaking = new Speaking(platform, settings, () => this._started, {
      client: () => this._clientId,
      live: () => this._conductor.current,
      keep: (inputs) => this._keeper.keepInputs(inputs),
      status: (event) => this._emitter.emit("input", event)
    });
    this._acks = new Acks(platform, timing.ackBytes, timing.ackAfter, (cursor) => {
      const live = this._conductor.current;
      if (live?.isDuplex && live.line === cursor.line) live.send(control({ kind: "ack", seq: cursor.seq }));
    });
    this._delivery = new Delivery(platform, this._emitter, this._texts, {
      isWhole: () => settings.segments === "whole" || settings.segments === "auto" && this._quality.isDegraded,
      applied: (cursor, bytes) => {
        this._acks.note(cursor, bytes);
        this._keeper.moved(formatCursor(cursor));
      },
      behind: (ms) => this._quality.behind(ms, true),
      roomAgain: () => this._conductor.wake(),
      fill: (run, known) => void this._recover((recovery) => recovery.fill(run, known)),
      verify: (run, told) => void this._recover((recovery) => recovery.verify(run, told))
    });
    this._quality = new QualityWatch(platform, this._emitter, () => this._conductor.current);
    this._recover = recoverBy(platform, this._emitter, this._texts, () => {
      const live = this._conductor.current;
      if (this._isClosed) return null;
      return {
        base: live?.url ?? this._state.url,
        session: settings.session,
        client: this._clientId,
        token: live?.token ?? this._credentials.current,
        timeoutMs: timing.connectTimeout
      };
    });
    this._reception = new Reception(platform, timing.reorder, {
      put: (frame, position, bytes) => this._delivery.put(frame, position, bytes),
      fetch: (since) => this._recover((recovery) => recovery.missing(since, this._reception)),
      reconnect: (cause) => this._conductor.reconnect(cause)
    });
    const { _emitter, _credentials, _conductor, _reception, _delivery, _speaking } = this;
    this._incoming = new Incoming(_emitter, _credentials, _conductor, _reception, _delivery, _speaking);
    this._page = new PageWatch(platform, {
      probe: () => this.probe(),
      online: () => this._conductor.online(),
      offline: () => this._conductor.offline(),
      leaving: () => void this._keeper.flush()
    });
    this._started = this._start(options);
  }
  // ---- what is known -----------------------------------------------------------------------------------------------
  get state() {
    return this._state.state;
  }
  get channel() {
    return this._state.channel;
  }
  /** After the last message that the application took; null before the first. */
  get cursor() {
    return this._delivery.cursor ?? this._reception.cursor;
  }
  /** Our client id; empty until the store has been read. */
  get client() {
    return this._clientId;
  }
  /** The position of the log's last message, as the newest welcome told it; null before the first. */
  get head() {
    return this._incoming.head;
  }
  get quality() {
    return this._quality.current();
  }
  /** Inputs that wait to be accepted. */
  get queued() {
    return this._speaking.queued;
  }
  /** Those that are open, and the last ones that ended. */
  get runs() {
    return this._delivery.runs;
  }
  /** Open ones. */
  get asks() {
    return this._delivery.asks;
  }
  /** The run's text as far as the application took its messages. */
  text(run) {
    return this._texts.runs.get(run)?.text.value() ?? "";
  }
  thinking(run) {
    return this._texts.runs.get(run)?.thinking.value() ?? "";
  }
  // ---- to read -----------------------------------------------------------------------------------------------------
  /** Returns how to stop listening. */
  on(name, listener) {
    const off = this._emitter.on(name, listener);
    if (CONTENT_EVENTS.includes(name)) queueMicrotask(() => this._delivery.drain());
    return off;
  }
  /** One loop at a time; a later one goes on where it was left. Throws `session.error` when it ends by one. */
  [Symbol.asyncIterator]() {
    return this._delivery.loop();
  }
  // ---- to speak ----------------------------------------------------------------------------------------------------
  /** To the agent. Resolves when it is durable, exactly once whatever happens to connections. Rejects with RelayError. */
  send(payload) {
    return this._speaking.input(payload);
  }
  /** End the run: when this resolves, no more of its text comes. `seen`: what was on screen; default: what was taken. */
  interrupt(run, seen) {
    const position = this._delivery.cursor;
    const own = position && { seq: parseCursor(position).seq, at: this._texts.runs.get(run)?.text.length ?? 0 };
    const told = seen ?? own;
    const accepted = this._speaking.control("interrupt", told ? { run, seen: { ...told } } : { run });
    accepted.then(
      () => this._delivery.silence(run),
      () => void 0
    );
    return accepted;
  }
  /** No text until `resume`; also on later connections. Nothing is lost. */
  pause() {
    return this._speaking.control("pause", {});
  }
  resume() {
    return this._speaking.control("resume", {});
  }
  /** End the run for everybody. */
  cancel(run, reason) {
    return this._speaking.control("cancel", reason === void 0 ? { run } : { run, reason });
  }
  /** `winner` says whether this was the first valid answer. */
  answer(ask2, value) {
    return this._speaking.control("answer", { ask: ask2, value });
  }
  /** The connection may be dead without knowing: ask it now. Page events do this by themselves. */
  probe() {
    this._conductor.probe();
  }
  /** A renderer says how far it is behind, in ms; 0 when it has caught up. */
  reportBehind(ms) {
    this._quality.behind(ms, false);
  }
  /** Leaves nothing behind. Resolves when the place is kept. */
  async close() {
    this._acks.flush();
    this._finish(null);
    await this._started;
    await this._keeper.flush();
  }
  // ---- its life ----------------------------------------------------------------------------------------------------
  async _start(options) {
    const place = await takePlace(this._platform, this._keeper, this._settings.session, options);
    if (this._isClosed) return place.release();
    this._releaseLock = place.release;
    this._clientId = place.client;
    this._reception.place.cursor = place.cursor;
    this._delivery.isFilling = place.cursor !== null;
    this._speaking.saved = place.inputs;
    this._conductor.run().catch((error) => {
      this._finish(new RelayError("internal", error instanceof Error ? error.message : "internal error"));
    });
  }
  _finish(error) {
    if (this._isClosed) return;
    this._isClosed = true;
    this.error = error;
    this._conductor.close();
    this._page.stop();
    this._acks.stop();
    this._reception.stop();
    this._speaking.close(error);
    this._releaseLock();
    const { url } = this._state;
    this._onState({ state: "closed", channel: null, cause: error?.message ?? "closed", retryIn: null, url });
    this._delivery.end(error);
    void this._keeper.flush();
  }
  _onState(event) {
    this._state = event;
    this._emitter.emit("state", event);
  }
};
function connect(options) {
  return new Session(options);
}

// src/render/frames.ts
var FALLBACK_MS = 250;
var NO_FRAMES_MS = 16;
function pageClock() {
  const { document } = globalThis;
  return {
    now: () => performance.now(),
    frame: typeof requestAnimationFrame === "function" ? (fn) => {
      const id = requestAnimationFrame(fn);
      return () => cancelAnimationFrame(id);
    } : null,
    after: (ms, fn) => {
      const timer = setTimeout(fn, ms);
      return () => clearTimeout(timer);
    },
    isHidden: () => document?.visibilityState === "hidden"
  };
}
var FrameBatch = class {
  #flush;
  #clock;
  #requestedAt = null;
  #cancels = [];
  /** `flush` is given how long the oldest change had waited; 0 in a hidden page, which is not late. */
  constructor(flush, clock = pageClock()) {
    this.#flush = flush;
    this.#clock = clock;
  }
  /** Something changed: `flush` will be called once, however often this is. */
  request() {
    if (this.#requestedAt !== null) return;
    this.#requestedAt = this.#clock.now();
    const { frame } = this.#clock;
    this.#cancels = [this.#clock.after(frame ? FALLBACK_MS : NO_FRAMES_MS, () => this.#run())];
    if (frame) this.#cancels.push(frame(() => this.#run()));
  }
  /** What was requested is done now. */
  flush() {
    if (this.#requestedAt !== null) this.#run();
  }
  /** What was requested is not done. */
  stop() {
    for (const cancel of this.#cancels) cancel();
    this.#cancels = [];
    this.#requestedAt = null;
  }
  #run() {
    const lateMs = this.#clock.isHidden() ? 0 : this.#clock.now() - (this.#requestedAt ?? 0);
    this.stop();
    this.#flush(lateMs);
  }
};

// src/render/lateness.ts
var WORTH_TELLING_MS = 500;
var TELL_AFTER_MS = 250;
var Lateness = class {
  #sink;
  #toldMs = 0;
  #toldAt = Number.NEGATIVE_INFINITY;
  constructor(sink) {
    this.#sink = sink;
  }
  /** True: the page was late, and another frame should be looked at even if nothing changes. */
  seen(lateMs, now) {
    const ms = lateMs < WORTH_TELLING_MS ? 0 : lateMs;
    const isNews = ms > 0 || this.#toldMs > 0;
    if (isNews && (ms === 0 || now - this.#toldAt >= TELL_AFTER_MS)) {
      this.#toldMs = ms;
      this.#toldAt = now;
      this.#sink.reportBehind?.(ms);
    }
    return this.#toldMs > 0;
  }
};

// src/render/text_nodes.ts
var NODE_CHARS = 4096;
var MAX_NODE_CHARS = 2 * NODE_CHARS;
var TextNodes = class {
  #element;
  #document;
  #nodes = [];
  /** The element should hold nothing else that this may come between: text is put at its end. */
  constructor(element) {
    this.#element = element;
    this.#document = element.ownerDocument ?? element;
  }
  append(text) {
    let rest = text;
    const last = this.#nodes[this.#nodes.length - 1];
    if (last) {
      const room = placeToCut(rest, Math.max(0, NODE_CHARS - last.length), MAX_NODE_CHARS - last.length);
      if (room > 0) last.appendData(rest.slice(0, room));
      rest = rest.slice(Math.max(0, room));
    }
    if (!rest) return;
    const fragment = this.#document.createDocumentFragment();
    while (rest) {
      const end = placeToCut(rest, NODE_CHARS, MAX_NODE_CHARS);
      const node = this.#document.createTextNode(rest.slice(0, end));
      this.#nodes.push(node);
      fragment.append(node);
      rest = rest.slice(end);
    }
    this.#element.appendChild(fragment);
  }
  /** What was there is no longer true. What both texts begin with stays as it is. */
  replace(text) {
    let kept = 0;
    let at = 0;
    while (kept < this.#nodes.length && text.startsWith(this.#nodes[kept]?.data ?? "\0", at)) {
      at += this.#nodes[kept]?.length ?? 0;
      kept += 1;
    }
    for (const node of this.#nodes.splice(kept)) node.remove();
    if (at < text.length) this.append(text.slice(at));
  }
};
function placeToCut(text, from, to) {
  if (text.length <= from) return text.length;
  const newline = text.indexOf("\n", Math.max(0, from - 1));
  const end = newline >= 0 && newline < to ? newline + 1 : Math.min(to, text.length);
  return end > 0 && (text.charCodeAt(end - 1) & 64512) === 55296 ? end - 1 : end;
}

// src/render/render_text.ts
var MAX_GATHERED_CHARS = 64 * 1024;
function renderText(session, run, element, options = {}) {
  const clock = options.clock ?? pageClock();
  const track = options.track ?? "text";
  const textOf2 = () => track === "text" ? session.text(run) : session.thinking(run);
  const nodes = new TextNodes(element);
  const lateness = new Lateness(session);
  let cutter = options.segments?.() ?? null;
  let cancelTick = () => void 0;
  let gathered = null;
  let readChars = null;
  const batch = new FrameBatch((lateMs) => {
    write();
    if (lateness.seen(lateMs, clock.now())) batch.request();
  }, clock);
  const write = () => {
    const text = gathered ?? textOf2();
    const isAnew = gathered === null;
    if (isAnew) readChars = text.length;
    gathered = "";
    if (isAnew && cutter) cutter = options.segments?.() ?? null;
    const shown = cutter ? cut(cutter, text) : text;
    if (isAnew) nodes.replace(shown);
    else if (shown) nodes.append(shown);
    if (isAnew || shown) options.onWrite?.();
  };
  const cut = (own, text) => {
    const now = clock.now();
    const segments = [...text ? own.feed(text, now) : [], ...own.tick(now)];
    cancelTick();
    const due = own.dueMs();
    if (due !== null) cancelTick = clock.after(Math.max(0, due - now), () => batch.request());
    return segments.map((segment) => segment.text).join("");
  };
  const stopText = session.on(track, (event) => {
    if (event.run !== run) return;
    const isRead = readChars !== null && textOf2().length !== readChars + event.added.length;
    readChars = null;
    const isTooMuch = (gathered?.length ?? 0) + event.added.length > MAX_GATHERED_CHARS;
    if (event.isRewritten || isRead || isTooMuch) gathered = null;
    else if (gathered !== null) gathered += event.added;
    batch.request();
  });
  const stopRun = session.on("run", (event) => {
    if (event.run !== run || event.state !== "ended" || !cutter) return;
    batch.flush();
    const rest = cutter.flush().map((segment) => segment.text);
    if (rest.length) nodes.append(rest.join(""));
    if (rest.length) options.onWrite?.();
  });
  batch.request();
  batch.flush();
  return () => {
    stopText();
    stopRun();
    batch.stop();
    cancelTick();
  };
}

// src/segmenter/grapheme_table.ts
var GRAPHEME_RANGES = "A3k.wK9A3K0Cgh.34C7n.7C7b.19C1C1.2C1.2C1.3E1i.6Ca.bA1C1a.lCgC2t.7E0C1.6C2.2C1.4ExC1Cu.rC2j.bC1m.9C9Co.4C1.9C1.3C1.5C17.3E1g.2C5.9C16.oE0C0.wF0Lh.11C0F0C0F1.3C0.8F0.4B0F0.2C1.7L0.8C2.2Lk.8C1F0.2Lh.kL1.7L1L3.4C2C1F0.2C0.4F2.2F2.2B0C9L4.2L1C2.2Lc.2CcC2.2F0C1kF1.3C0.2C4.2C2.3C3Cu.2C3Cb.2F0Lh.kL1.7L1.2L1.5C2F1.3C0.5C1.2F0F1.2B0Ck.2LlC0.6C1F0.2Lh.kL1.7L1.2L1.5C2C1.2F0C0.4F2.2F2.2B0C5.5L4.2L1C2.2LdCgC1nF0C0F0.2F3.3F1.3C0C9C14F0.3C0Lg.kL1.gC2C1.3F0.4C1.3C1.3B0C7.2L1.3C7.2CtF0.2C1kF1C0.2F0C0F0.2C1.3C1.4C7.2Cb.2FfCc.2F0.2Lh.12C0.2C1F0.2C0.4F1.3F1.3B0E0C8Ca.2CtF0.2C1yC4F0.2C0.3C1F1.7C0Fi.2C1pF1C0.7Cc.8C2qF1C0.9Cb.7C21.2CrC1C1F4.2C1d.eF0C0.5C1.2C5.bC1.10C9L1l.17C2.4F0C0.6B1C0F0.2C0.2L0Lg.6F0.2C0.2L0.4C0.3L0L3.2L7.3C0.4L0.dC0F1C0.2C6L0CeG2q.2oH0.20I0.2gC9p.3Cqa.4Cs.3Ct.2Cu.2Lc.1gC0.2F0C0.7F0.8C0F0.2C0.9B0C0C9C19.3A0C0C39.2CyC3a.3F0.4C0.2F0.3F4.2C0F0.6C0.3C63.2F0.2C0L4.1hF0C0F0C0.7B1C1C2.8F0.6C0.aC2C1c.1tCf.4F0L6.2L6.xC0.aF0.4C0.2B0L0.8Cu.9Cc.2F0L0.uF0C0.4F0.2C0.3B0C0.2L0.2Lb.3C14F0C0.2F0.3C0F0C0.5F1c.8C0.8F0.2C0.2C48.3C1.dF0C0.7C4C6F2C0.2C5i.1sAejD0A1.2Ao.7KdKcAm.gC2o.xK1dKmK2i.6Kf.2Ka7.2KcK4mKp.bK4.3K5jK6f.2KaK9K1m.4K1.5K9K2K2.2K2K4K2K1.2K2K3K3.2K8.3K5K1K5.cKb.2K2K1.2K1KiK2.2Ki.6K1K1.2K3.2K5K2.2K4.2Kb.2K5.2K2K5.2K1K1.2Kk.2K5.6K1.4K2K4K2K2.6K1K2K1K1K6K3K6Ka.2KfK2K4K1K4.3K1Kb.2K1c.3K9KeKeKac.2Kcv.3Kj.2K1fK4Cbd.3C3xC2o.wCfe.6K0KcC2j.2Ke4K1Cmvp.4C1.aCw.2C28.2C7kC3C4Fn.2C0.2F0C4F2b.2F1e.gC0.2Cq.iCdC12.8Cp.bF0C0Gc.tC3.3F0L5.3L3.10C0F0.2C0.4F0.2C0.2F0.2B0Lv.5C0L1.9La.5C16.6F0.2C0.2F0.2C0.2CcC8F0Li.gL1.3L6C1L1.2C1cC1.3C2.2C5.2C1Lu.bF0C0.2F0.2F5B0L5l.rF8.2C0F0.2C0F0.2F1C0H8n6.nI4.1dC6xuCkh.gCg.gA5rC4e.2A28.cCe9C6aC45.5L1adC0.3C1.2C5.4L0.4L1.3L1.tC2.3B4C4l.2Cfx.4C1t.5C8t.2Cu.5Cw.gC1y.bC1d.4F3eC0F0C1h.fC15C2.2Ca.3F0F19.3C0.4F0.2C0.2E2C4EaC1e.3L0.10C0.5F0C0.6B0C0LfF0.2L0C17Cc.2F0F1c.3C0.9F0C0E1.2C5.4F1C0F2k.3C0.3F0.2C0.4C6C2C4dF0.3C0.8Cl.2F0.2C1j.2C1F0C0F0.4F2.2F2.2C0C9Fa.2C2.7C3.5Lb.aL1L2L1.12C2F0.2C0.6C1C2C1.3F0F1.2C0.2B0E0C0Ce.2F2a.3C0.8F0.2C0.3F0C0CnC29F0.2C0.6F0C0F0.2C0F0C0.2F0C0.2C6jF0.2C0.4F2.4C0.2F0C0.2Cr.2F2a.3C0.8F0.2C0F0C0.2C2yF0C0F0.2C0.8C2tF0C0C2.4F0C0.5F74.3C0.9F0C0.2L5h.7L2L2.8L1.2L1.oC0F0.5F1.2C2.3B0E0F0E0F0C0F3x.3C0.4C2.2F0.4C0F3LrC0.aL0.14C0.6F0C1.4B8L8C0.6F0.2C0.3L0.14E0.6C0.dF0C0B0L34C2dF0C0.3F0C0F0F5jC0.7C1.6F0C0C2a.mF1C0.7F0C0.2F0C0.2C3e.6C3C1.2C1.7E0C0F1u.5C1.2F1.2C0F0C0C2gL0C75.2F0.2C9.2E0F0L0.dL1.yF0.2C0.5F3.2C0.2B0CnA445.gC0C6.fC8ug.cF0.3C0.3C1xc.5C1n.7HfgH3.4CdgF1.1jC7.4C29Cb.2Cf57.2A1.4C3mk.1aC2.nCdc.2C1o.5C3.6A0.8C0.8C2.7Cu.4C44.3Cb.3C8.2C2Cw.2C1ha.1jC4.1eC8CeCm.5C1.fC11s.7C1.hC2.7C1.2C1.5C2sC4g.7CafC1p.4Ce4.4C72.2C6rC2C7.2C5Cd6.7C31.7K1btK13.4K2s.cKf.2KfKe.2K11.aK34.2Kc.2KeK2.aKk.1jJ0.qK1.fKaKkK2.9K1.4K9.nK6.58K2.34K2.2K1.3K2.2bK2.3K1.4C0.5K0.72K1.1rKb.6K1.oK7.2K2.8KcK2.4K2K4.2Kd.2K2K8.2K9K5.3Kc.3K8.3K2K1K4K6K3K6.2eK1c.1yK5.8K2.hK3K1.6K2.dK64.lKr.4K1k.8Ka.6K14.8Ku.2Kc.4K2.eK9.13Kc.1bK1.aK1.55K2g.8Ke.42K74.seAgute.wC0.2oA0.3kC0.6oA0.2s0";

// src/segmenter/graphemes.ts
var SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
var isSpaceAt = new RegExp(`[${SPACE}]`, "y");
function isSpace(text, at) {
  isSpaceAt.lastIndex = at;
  return isSpaceAt.test(text);
}
var firsts;
var ends;
var kinds;
function readTable() {
  const entries = GRAPHEME_RANGES.match(/[A-Z][^A-Z]+/g) ?? [];
  firsts = new Uint32Array(entries.length);
  ends = new Uint32Array(entries.length);
  kinds = new Uint8Array(entries.length);
  let end = 0;
  entries.forEach((entry, index) => {
    const [gap = "0", length = "1"] = entry.slice(1).split(".");
    const first = end + Number.parseInt(gap, 36);
    end = first + Number.parseInt(length, 36);
    firsts[index] = first;
    ends[index] = end;
    kinds[index] = entry.charCodeAt(0) - 65;
  });
}
function kindOf(code) {
  if (code < 128) {
    if (code === 10) return 14 /* LF */;
    if (code === 13) return 13 /* CR */;
    return code < 32 || code === 127 ? 0 /* Control */ : 12 /* Other */;
  }
  if (code === 8205) return 15 /* ZWJ */;
  if (code >= 44032 && code <= 55203) return (code - 44032) % 28 ? 17 /* LVT */ : 16 /* LV */;
  if (!firsts) readTable();
  let low = 0;
  let high = firsts.length;
  while (low < high) {
    const middle = low + high >> 1;
    if (ends[middle] > code) high = middle;
    else low = middle + 1;
  }
  return low < firsts.length && firsts[low] <= code ? kinds[low] : 12 /* Other */;
}
function graphemeEnd(text, start) {
  let code = text.codePointAt(start);
  let at = start + (code > 65535 ? 2 : 1);
  if (code < 128 && code !== 13 && !(text.charCodeAt(at) >= 128)) return at;
  let before = kindOf(code);
  let emoji = before === 10 /* Pictograph */ ? 1 : 0;
  let isLinked = before === 1 /* Linker */;
  let regionals = before === 9 /* Regional */ ? 1 : 0;
  while (at < text.length) {
    code = text.codePointAt(at);
    const kind = kindOf(code);
    if (!joins(before, kind, emoji, isLinked, regionals)) break;
    if (kind === 10 /* Pictograph */) emoji = 1;
    else if (emoji === 1 && kind === 15 /* ZWJ */) emoji = 2;
    else if (!(emoji === 1 && isExtending(kind))) emoji = 0;
    if (kind === 1 /* Linker */) isLinked = true;
    else if (kind !== 2 /* Joining */ && kind !== 15 /* ZWJ */) isLinked = false;
    regionals = kind === 9 /* Regional */ ? regionals + 1 : 0;
    before = kind;
    at += code > 65535 ? 2 : 1;
  }
  return at;
}
function isExtending(kind) {
  return kind === 3 /* Extend */ || kind === 2 /* Joining */ || kind === 1 /* Linker */;
}
function joins(before, kind, emoji, isLinked, regionals) {
  if (before === 13 /* CR */) return kind === 14 /* LF */;
  if (before === 14 /* LF */ || before === 0 /* Control */) return false;
  switch (kind) {
    case 13 /* CR */:
    case 14 /* LF */:
    case 0 /* Control */:
      return false;
    case 3 /* Extend */:
    case 2 /* Joining */:
    case 1 /* Linker */:
    case 15 /* ZWJ */:
    case 5 /* SpacingMark */:
      return true;
  }
  if (before === 4 /* Prepend */) return true;
  switch (kind) {
    case 6 /* L */:
    case 16 /* LV */:
    case 17 /* LVT */:
      return before === 6 /* L */;
    case 7 /* V */:
      return before === 6 /* L */ || before === 7 /* V */ || before === 16 /* LV */;
    case 8 /* T */:
      return before === 7 /* V */ || before === 8 /* T */ || before === 16 /* LV */ || before === 17 /* LVT */;
    case 10 /* Pictograph */:
      return emoji === 2;
    case 11 /* Consonant */:
      return isLinked;
    case 9 /* Regional */:
      return regionals % 2 === 1;
  }
  return false;
}
function boundaries(text) {
  const out = [];
  for (let at = 0; at < text.length; ) {
    at = graphemeEnd(text, at);
    out.push(at);
  }
  return out;
}
function characterBefore(text, at) {
  const low = text.charCodeAt(at - 1);
  return low >= 56320 && low <= 57343 ? text.slice(at - 2, at) : text.slice(at - 1, at);
}
function characterAt(text, at) {
  const high = text.charCodeAt(at);
  return text.slice(at, at + (high >= 55296 && high <= 56319 ? 2 : 1));
}
function lastCharacters(text, count) {
  let at = text.length;
  for (let left = count; left && at; left -= 1) at -= characterBefore(text, at).length;
  return text.slice(at);
}
function characterCount(text) {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) if ((text.charCodeAt(at) & 64512) !== 56320) count += 1;
  return count;
}
function placeOf(text, count, start = 0) {
  let at = start;
  for (let left = count; left > 0 && at < text.length; left -= 1)
    at += (text.charCodeAt(at) & 64512) === 55296 ? 2 : 1;
  return Math.min(at, text.length);
}
function byteLength(text) {
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit >= 128) bytes += unit < 2048 || (unit & 63488) === 55296 ? 1 : 2;
  }
  return bytes;
}
function endWithin(text, start, maxBytes) {
  let left = maxBytes;
  let at = start;
  while (at < text.length) {
    const unit = text.charCodeAt(at);
    const isPair = (unit & 64512) === 55296;
    left -= unit < 128 ? 1 : unit < 2048 ? 2 : isPair ? 4 : 3;
    if (left < 0) break;
    at += isPair ? 2 : 1;
  }
  return Math.min(at, text.length);
}
function isBoundary(before, after) {
  return graphemeEnd(before + after, 0) === before.length;
}
function lastBoundary(text, following) {
  let last = 0;
  for (const end of boundaries(text + following)) {
    if (end > text.length) break;
    last = end;
  }
  return last;
}
var lastBreakMarks = new RegExp(`[${SPACE}\uFF0C\u3001\uFF1B]`, "y");
function bestCut(text, following) {
  const half = placeOf(text, characterCount(text) >> 1);
  const newline = text.lastIndexOf("\n");
  if (newline >= half) return newline + 1;
  for (let at = text.length - 1; at >= half; at -= 1) {
    lastBreakMarks.lastIndex = at;
    if (!lastBreakMarks.test(text)) continue;
    const cut = at + 1;
    if (isBoundary(text[at], characterAt(text + following, cut))) return cut;
    break;
  }
  return lastBoundary(text, following) || text.length;
}
function unfinishedTail(text) {
  if (!text || !mayGrow(characterBefore(text, text.length).codePointAt(0))) return text.length;
  const all = boundaries(text);
  return all.length > 1 ? all[all.length - 2] : 0;
}
function mayGrow(code) {
  switch (kindOf(code)) {
    case 13 /* CR */:
    case 15 /* ZWJ */:
    case 10 /* Pictograph */:
    case 9 /* Regional */:
    case 4 /* Prepend */:
    case 6 /* L */:
    case 7 /* V */:
    case 1 /* Linker */:
    case 11 /* Consonant */:
      return true;
  }
  return code >= 127995 && code <= 127999;
}

// src/segmenter/rule.ts
var Rule = class {
  /** Where the first segment of `held` ends, once no further text could change that; 0: not yet. */
  find(_held) {
    return 0;
  }
  /** Where to cut when `held` is full and nothing was found; > 0. */
  force(held, following) {
    return bestCut(held, following);
  }
  /** From where on the held text should rather stay when its time has come but it is still growing. */
  unfinished(held) {
    return unfinishedTail(held);
  }
  /** `text` was found; it leaves. */
  take(text, out) {
    out.push({ text, isCode: false });
  }
  /** `text` must go because of the limit or the time, or because the text ends here. */
  leave(text, _atEnd, out) {
    this.take(text, out);
  }
  /** Plain values that survive JSON. */
  save() {
    return [];
  }
  /** What `save` gave. Throws SegmentStateError. */
  load(_values, _held) {
  }
};
var SegmentStateError = class extends Error {
  constructor() {
    super(...arguments);
    this.name = "SegmentStateError";
  }
};
function checkedPlace(value, held) {
  const place = checkedCount(value);
  if (place > held.length) throw new SegmentStateError(`place ${place} is not within the held text`);
  return place;
}
function checkedCount(value) {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0) {
    throw new SegmentStateError("the state has no number where one belongs");
  }
  return value;
}

// src/segmenter/pattern_syntax.ts
var MAX_PATTERN_CHARS = 1e3;
var WORD = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}";
var NO_SPACE = "\\0-\\x08\\x0e-\\x1f!-\\x84\\x86-\\x9f\\xa1-\\u167f\\u1681-\\u1fff\\u200b-\\u2027\\u202a-\\u202e\\u2030-\\u205e\\u2060-\\u2fff\\u3001-\\u{10ffff}";
var SYNTAX = "^$\\.*+?()[]{}|/";
var OUTSIDE = {
  w: `[${WORD}]`,
  W: `[^${WORD}]`,
  s: `[${SPACE}]`,
  S: `[^${SPACE}]`,
  d: "\\p{Nd}",
  D: "\\P{Nd}",
  b: `(?:(?<=[${WORD}])(?![${WORD}])|(?<![${WORD}])(?=[${WORD}]))`,
  B: `(?:(?<=[${WORD}])(?=[${WORD}])|(?<![${WORD}])(?![${WORD}]))`,
  A: "(?<![^])",
  Z: "(?![^])"
};
var INSIDE = { w: WORD, s: SPACE, S: NO_SPACE, d: "\\p{Nd}", D: "\\P{Nd}" };
function compilePattern(pattern) {
  const compiled = typeof pattern === "string" ? compileText(pattern) : compileAsIs(pattern);
  if (compiled.exec("")) {
    throw new RangeError("the pattern matches the empty text and would cut everywhere; let it match something");
  }
  return compiled;
}
function compileAsIs(pattern) {
  const flags = pattern.flags.replace(/[gy]/g, "");
  return new RegExp(pattern.source, `g${flags}${/[uv]/.test(flags) ? "" : "u"}`);
}
function compileText(pattern) {
  if (pattern.length > MAX_PATTERN_CHARS) {
    throw new RangeError(`the pattern has ${pattern.length} characters; at most ${MAX_PATTERN_CHARS} are allowed`);
  }
  const [inline = "", flags = ""] = /^\(\?([ims]+)\)/.exec(pattern) ?? [];
  return new RegExp(translated(pattern.slice(inline.length), marksOf(flags)), flags.includes("i") ? "giu" : "gu");
}
function marksOf(flags) {
  const isMultiline = flags.includes("m");
  return {
    "^": isMultiline ? "(?<![^\\n])" : "(?<![^])",
    $: isMultiline ? "(?![^\\n])" : "(?=\\n?(?![^]))",
    ".": flags.includes("s") ? "[^]" : "[^\\n]"
  };
}
function translated(pattern, marks) {
  let out = "";
  let inClass = false;
  for (let at = 0; at < pattern.length; at += 1) {
    const mark = pattern.charAt(at);
    if (mark === "\\" && at + 1 < pattern.length) {
      at += 1;
      out += escaped(pattern.charAt(at), inClass);
      continue;
    }
    const isMark = !inClass;
    if (mark === "[" && !inClass) inClass = true;
    else if (mark === "]") inClass = false;
    out += isMark && marks[mark] || mark;
  }
  return out;
}
function escaped(letter, inClass) {
  const known = (inClass ? INSIDE : OUTSIDE)[letter];
  if (known !== void 0) return known;
  if (inClass && letter === "W") throw new SyntaxError("\\W within [...] is not understood here; write it outside");
  const isPlain = letter < "\x7F" && !/[A-Za-z0-9]/.test(letter) && !SYNTAX.includes(letter) && !(inClass && letter === "-");
  return isPlain ? letter : `\\${letter}`;
}

// src/segmenter/options.ts
var MIN_HELD_BYTES = 16;
var MAX_HELD_BYTES = 1024;
var MAX_TOKENS = 1e3;
var MAX_DELAY_MS = 1e4;
var MODES = ["tokens", "sentence", "structure", "pattern", "raw", "width"];
function planOf(options) {
  const mode = options.mode ?? "tokens";
  if (!MODES.includes(mode)) throw new RangeError(`mode \`${mode}\` is none of: ${MODES.join(", ")}`);
  const isWidth = mode === "width";
  if (options.pattern === void 0 === (mode === "pattern")) {
    throw new RangeError("give a pattern in mode `pattern`, and in no other mode");
  }
  if (isWidth !== (options.measure !== void 0) || isWidth !== (options.maxWidth !== void 0)) {
    throw new RangeError("give measure and maxWidth in mode `width`, and in no other mode");
  }
  if (isWidth && !(options.maxWidth !== void 0 && options.maxWidth > 0)) {
    throw new RangeError("maxWidth must be more than 0");
  }
  return {
    mode,
    tokens: checkedRange("tokens", options.tokens ?? 15, 1, MAX_TOKENS),
    maxDelayMs: checkedRange("maxDelayMs", options.maxDelayMs ?? (isWidth ? 250 : 60), 0, MAX_DELAY_MS),
    maxBytes: checkedRange("maxBytes", options.maxBytes ?? MAX_HELD_BYTES, MIN_HELD_BYTES, MAX_HELD_BYTES),
    firstImmediately: options.firstImmediately ?? !isWidth,
    pattern: options.pattern === void 0 ? null : compilePattern(options.pattern),
    measure: options.measure ?? (() => 0),
    maxWidth: options.maxWidth ?? 0
  };
}
function checkedRange(name, value, low, high) {
  if (!(value >= low && value <= high)) throw new RangeError(`${name} is ${value}; choose ${low} to ${high}`);
  return value;
}

// src/segmenter/pattern.ts
var STEP = 16;
var PatternRule = class extends Rule {
  #pattern;
  /** Code points that were looked at. */
  #scan = 0;
  /** Where segments end in the text that `take` gets next. */
  #ends = [];
  constructor(pattern) {
    super();
    this.#pattern = pattern;
  }
  find(held) {
    const count = characterCount(held);
    for (; ; ) {
      const length = this.#scan + Math.max(STEP, this.#scan >> 2);
      if (length > count) return 0;
      if (!this.#ends.length) this.#look(held.slice(0, placeOf(held, length)));
      const last = this.#ends[this.#ends.length - 1];
      if (last !== void 0) return last;
      this.#scan = length;
    }
  }
  /** Where matches end within `text`, on graphemes. */
  #look(text) {
    const ends2 = /* @__PURE__ */ new Set();
    for (const match of text.matchAll(this.#pattern)) ends2.add(match.index + match[0].length);
    ends2.delete(0);
    ends2.delete(text.length);
    const graphemes = ends2.size ? new Set(boundaries(text)) : ends2;
    this.#ends = [...ends2].filter((end) => graphemes.has(end)).sort((one, other) => one - other);
  }
  take(text, out) {
    const ends2 = this.#ends;
    this.#scan = 0;
    this.#ends = [];
    let start = 0;
    for (const end of ends2.slice(0, -1)) {
      out.push({ text: text.slice(start, end), isCode: false });
      start = end;
    }
    out.push({ text: text.slice(start), isCode: false });
  }
  leave(text, _atEnd, out) {
    this.#look(text);
    this.#ends.push(text.length);
    this.take(text, out);
  }
  save() {
    return [this.#scan];
  }
  load(values, _held) {
    this.#scan = checkedCount(values[0]);
  }
};

// src/segmenter/sentences.ts
var LINE_ENDS = "\\n\\r\\x85\\u2028\\u2029";
var SOFT = ".!?\u2026\u2025";
var HARD = "\u3002\uFF61\uFF0E\uFF01\uFF1F\u203C\u2047\u2048\u2049\u061F\u06D4\u0964\u0965\u0589\u1362\u1367\u104A\u104B\u0F0D\u0F0E\u17D4\u17D5\u1803\u1809";
var CLOSERS = "\"')\\]}*_`~\u201D\u2019\xBB\u203A\u300D\u300F\uFE42\uFE44\uFF09\u3011\u3009\u300B\u3015\uFF3D\uFF5D\uFF60\u3017\u3019\u301B\uFF02\uFF07";
var OPENING_OR_CLOSING = "\u201C\u2018\xAB\u2039";
var WHITE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
var LETTER = "\\p{L}\\p{Nl}\\p{No}";
var candidate = new RegExp(`[${SOFT}${HARD}${LINE_ENDS}]`, "g");
var tailOf = new RegExp(
  `(?:[${SOFT}${HARD}](?:[${SOFT}${HARD}${CLOSERS}\\ufe0e\\ufe0f]|[${OPENING_OR_CLOSING}](?=[${SPACE}]))*(?:(?![${LINE_ENDS}])[${SPACE}])*)+`,
  "y"
);
var whiteAt = new RegExp(`[${SPACE}]+`, "y");
var plainLineOf = new RegExp(`^[${LETTER}][^${SOFT}${HARD}${LINE_ENDS}{]*\\n`, "u");
var withoutSpaces = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}「『（《〈【]/u;
var hasHard = new RegExp(`[${HARD}]`);
var notSoft = new RegExp(`[^${SOFT}]+`, "g");
var isLineEnd = new RegExp(`^[${LINE_ENDS}]`);
var isWhite = new RegExp(`^[${WHITE}]`);
var whiteEnd = new RegExp(`[${WHITE}]+$`);
var enumerator = /^(?:\p{Nd}{1,3}|[a-z])$/u;
var dotted = new RegExp(`^(?:[${LETTER}]\\.)+[${LETTER}]$`, "u");
var openers = /^["'([{*_`“‘«‹„‚¿¡]+/;
var isLower = /^\p{Lowercase}/u;
var oneUpper = /^\p{Uppercase}$/u;
var isDigit = new RegExp(
  "^[\\p{Nd}\\u{b2}\\u{b3}\\u{b9}\\u{1369}-\\u{1371}\\u{19da}\\u{2070}\\u{2074}-\\u{2079}\\u{2080}-\\u{2089}\\u{2460}-\\u{2468}\\u{2474}-\\u{247c}\\u{2488}-\\u{2490}\\u{24ea}\\u{24f5}-\\u{24fd}\\u{24ff}\\u{2776}-\\u{277e}\\u{2780}-\\u{2788}\\u{278a}-\\u{2792}\\u{10a40}-\\u{10a43}\\u{10e60}-\\u{10e68}\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}]",
  "u"
);
var ABBREVIATIONS = new Set(
  "Mr Mrs Ms Mx Dr Prof St Sr Rev Hon Gen Col Maj Capt Lt Sgt Gov Sen Rep Pres Mt Ft Mme Mlle MM Hr Fr Sra Srta Dra Ud vs cf eg ie viz approx ca al bzw bspw evtl ggf vgl".split(" ")
);
var BEFORE_NUMBERS = new Set(
  "no nos nr fig figs eq eqs sec ch chap vol vols p pp art abs tab ref p\xE1g n\xFAm jan feb mar apr jun jul aug sep sept oct nov dec".split(" ")
);
var LOOK_BACK = 24;
function plainLineEnd(held) {
  return plainLineOf.exec(held)?.[0].length ?? 0;
}
function sentenceEnd(held, from) {
  let scan = from;
  if (!scan) {
    const line = plainLineEnd(held);
    if (line) return [line, 0];
  }
  if (scan === 0 || isWhite.test(held[scan - 1])) {
    whiteAt.lastIndex = 0;
    if (whiteAt.test(held)) scan = Math.max(scan, whiteAt.lastIndex);
  }
  for (; ; ) {
    candidate.lastIndex = scan;
    if (!candidate.test(held)) return [0, held.length];
    const at = candidate.lastIndex - 1;
    if (isLineEnd.test(held[at])) {
      if (held[at] !== "\r") return [at + 1, 0];
      if (at + 1 === held.length) return [0, at];
      return [at + (held[at + 1] === "\n" ? 2 : 1), 0];
    }
    tailOf.lastIndex = at;
    const marks = tailOf.exec(held)[0];
    const end = at + marks.length;
    if (end === held.length || end + 1 === held.length && OPENING_OR_CLOSING.includes(held[end])) return [0, at];
    if (isEnd(held, at, marks)) return [end, 0];
    scan = end;
  }
}
function isEnd(held, at, marks) {
  const following = characterAt(held, at + marks.length);
  if (isLineEnd.test(following) || !isBoundary(characterBefore(marks, marks.length), following)) return false;
  if (hasHard.test(marks)) {
    return marks !== "\uFF0E" || !isDigit.test(following) || !isDigit.test(at ? characterBefore(held, at) : "");
  }
  if (!isWhite.test(marks[marks.length - 1]) && !withoutSpaces.test(following)) return false;
  const onlyMarks = marks.replace(notSoft, "");
  if (!/[!?]/.test(onlyMarks)) {
    return onlyMarks === "." && !isLower.test(following) && !isAbbreviation(held, at, following);
  }
  return !(isLower.test(following) && marks.replace(whiteEnd, "").length > onlyMarks.length);
}
function isAbbreviation(held, at, following) {
  const all = held.slice(0, at);
  const before = lastCharacters(all, LOOK_BACK);
  const words = before.split(new RegExp(`[${WHITE}]+`)).filter(Boolean);
  if (!words.length || isWhite.test(before[before.length - 1])) return false;
  const word2 = words[words.length - 1].replace(openers, "");
  if (words.length === 1 && lastCharacters(all, LOOK_BACK - 1) === all && enumerator.test(word2)) return true;
  if (oneUpper.test(word2)) return word2 !== "I";
  return ABBREVIATIONS.has(word2) || isDigit.test(following) && BEFORE_NUMBERS.has(word2.toLowerCase()) || dotted.test(word2);
}
var SentenceRule = class extends Rule {
  #scan = 0;
  find(held) {
    const [end, further] = sentenceEnd(held, this.#scan);
    this.#scan = further;
    return end;
  }
  take(text, out) {
    this.#scan = 0;
    super.take(text, out);
  }
  save() {
    return [this.#scan];
  }
  load(values, held) {
    this.#scan = checkedPlace(values[0], held);
  }
};

// src/segmenter/lines.ts
var fenceAt = /^ {0,3}(`{3,}|~{3,})([^\n]*)(\n?)/;
var closing = /^ {0,3}(`{3,}|~{3,})[ \t]*\r?\n?$/;
var item = /^(?:[-*+]|\p{Nd}{1,9}[.)])([ \t]?)/u;
var itemMaybe = /^(?:[-*+]|\p{Nd}{1,9}[.)]?)$/u;
var heading = /^#{1,6}(?:[ \t\r\n]|($))/;
var NO_WHITE = "[^\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000{,]";
var languageIn = new RegExp(`^[ \\t]*(${NO_WHITE}{1,40})`, "u");
var WHITE2 = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
var objectLanguageIn = new RegExp(`"lang(?:uage)?"${WHITE2}*:${WHITE2}*"([^"\\\\\\n]{1,40})"`, "u");
var objectWhite = /[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
var TELLING = "`~#-*+0123456789|{\r\n";
var MAX_INDENT = 3;
var MAX_OBJECT_SPACES = 8;
var OBJECT_PARTS = ["{", '"type"', ":", '"code_block"'];
function kindOf2(line) {
  const text = line.replace(/^[ \t]+/, "");
  if (!text) return "undecided";
  const first = text[0];
  if (!TELLING.includes(first)) return "flow";
  if (first === "\n" || first === "\r") {
    if (text === "\r") return "undecided";
    return first === "\n" || text[1] === "\n" ? "blank" : "flow";
  }
  if ("-*+0123456789".includes(first)) return kindOfItem(text);
  const indent = line.slice(0, line.length - text.length);
  if (indent.length > MAX_INDENT || indent.includes("	")) return "flow";
  if (first === "|") return "table";
  if (first === "#") {
    const match = heading.exec(text);
    return match ? match[1] === void 0 ? "heading" : "undecided" : "flow";
  }
  if (first === "{") {
    const match = objectAt(text, 0);
    return match === "no" ? "flow" : match === "partial" ? "undecided" : "object";
  }
  return kindOfFence(text);
}
function kindOfItem(text) {
  if (item.exec(text)?.[1]) return "item";
  return itemMaybe.test(text) ? "undecided" : "flow";
}
function kindOfFence(text) {
  const match = fenceAt.exec(text);
  if (!match) return ["`", "``", "~", "~~"].includes(text) ? "undecided" : "flow";
  if (match[1][0] === "`" && match[2].includes("`")) return "flow";
  return match[3] ? "fence" : "undecided";
}
function objectAt(text, at) {
  let place = at;
  for (const part of OBJECT_PARTS) {
    const found = text.slice(place, place + part.length);
    if (found !== part) return place + found.length === text.length && part.startsWith(found) ? "partial" : "no";
    place += part.length;
    for (let spaces = 0; spaces < MAX_OBJECT_SPACES && place < text.length && objectWhite.test(text[place]); spaces += 1) {
      place += 1;
    }
  }
  if (place >= text.length) return "partial";
  return text[place] === "," || text[place] === "}" ? "yes" : "no";
}
function fenceOf(line) {
  const match = fenceAt.exec(line);
  return !match || match[1][0] === "`" && match[2].includes("`") ? "" : match[1];
}
function languageOf(line) {
  const match = fenceAt.exec(line);
  return (match && languageIn.exec(match[2])?.[1]) ?? null;
}
function objectLanguage(text) {
  return objectLanguageIn.exec(text)?.[1] ?? null;
}
function closes(line, fence, length) {
  const match = closing.exec(line);
  return match !== null && match[1][0] === fence && match[1].length >= length;
}
var MAX_HEAD = 80;
function joined(head, more) {
  return head === null || characterCount(head) + characterCount(more) > MAX_HEAD ? null : head + more;
}
function headOf(line) {
  return [...line].slice(0, MAX_HEAD).join("");
}

// src/segmenter/blocks.ts
var MAX_DEPTH = 1e4;
var outside = /[^"{}]*/y;
var inside = /[^"\\\n]*/y;
var Block = class {
  constructor() {
    this.number = 0;
    /** How many parts of it are out. */
    this.part = 0;
    /** The character of its fence; empty: it is an object. */
    this.fence = "";
    this.fenceLength = 0;
    this.language = null;
    this.depth = 0;
    this.inString = false;
    this.isEscaped = false;
  }
  openFence(line) {
    this.number += 1;
    this.part = 0;
    this.learnFence(line);
  }
  /** False when `line` turns out to open no block: a backtick came late, and it is code within a line. */
  learnFence(line) {
    const fence = fenceOf(line);
    if (!fence) return false;
    this.fence = fence[0];
    this.fenceLength = fence.length;
    this.language = languageOf(line);
    return true;
  }
  /** `outAlready` is what is out of the object, as text. */
  openObject(outAlready) {
    this.number += 1;
    this.part = 0;
    this.fence = "";
    this.fenceLength = 0;
    this.language = null;
    if (outAlready) this.#follow(outAlready, 0);
  }
  /** At `scan` a line begins, or at 0 the rest of one that began with `head` (null: too long to close it). */
  closingLine(held, from, head) {
    let scan = from;
    if ((scan || head === "") && held.indexOf(this.fence.repeat(3), scan) < 0) {
      const newline = held.lastIndexOf("\n");
      return [0, newline >= scan ? newline + 1 : scan];
    }
    for (; ; ) {
      const newline = held.indexOf("\n", scan);
      if (newline < 0) return [0, scan];
      const line = held.slice(scan, newline + 1);
      const began = scan ? "" : head;
      scan = newline + 1;
      if (began !== null && closes(began + line, this.fence, this.fenceLength)) return [scan, scan];
    }
  }
  /** Whether `line` would close the block if it ended here. */
  isClosing(line) {
    return !!line && closes(line, this.fence, this.fenceLength);
  }
  /** A brace is the end only when it is known that no mark is put on it. */
  objectEnd(held, from) {
    let scan = from;
    if (this.depth || !scan) {
      scan = this.#follow(held, scan);
      if (this.depth) return [0, scan];
    }
    let end = scan;
    while (end < held.length && !isBoundary(characterBefore(held, end), characterAt(held, end))) {
      end += characterAt(held, end).length;
    }
    return [end === held.length && held[held.length - 1] !== "\n" ? 0 : end, scan];
  }
  /** Goes on from `from`: where the object ends, or the end of the text while `depth` is not 0. */
  #follow(text, from) {
    let scan = from;
    while (scan < text.length) {
      if (this.isEscaped && text[scan] !== "\n") {
        this.isEscaped = false;
        scan += 1;
        continue;
      }
      const plain = this.inString ? inside : outside;
      plain.lastIndex = scan;
      plain.test(text);
      scan = plain.lastIndex;
      if (scan === text.length) break;
      const mark = text[scan];
      scan += 1;
      if (mark === '"') this.inString = !this.inString;
      else if (mark === "\\") this.isEscaped = true;
      else if (mark === "{") this.depth += 1;
      else if (mark === "}") this.depth -= 1;
      if (mark === "\n" || this.depth === 0 || this.depth > MAX_DEPTH) {
        this.depth = 0;
        this.inString = this.isEscaped = false;
        return scan;
      }
    }
    return scan;
  }
  nextPart(text, isLast) {
    this.part += 1;
    if (!this.fence && this.language === null) this.language = objectLanguage(text);
    return {
      text,
      isCode: true,
      fields: { block: this.number, language: this.language, part: this.part, last: isLast }
    };
  }
  save() {
    return [
      this.number,
      this.part,
      this.fence,
      this.fenceLength,
      this.language,
      this.depth,
      this.inString,
      this.isEscaped
    ];
  }
  load(values) {
    if (!Array.isArray(values) || values.length !== 8) throw new SegmentStateError("the state has no code block");
    const [number, part, fence, fenceLength, language, depth, inString, isEscaped] = values;
    if (typeof fence !== "string" || language !== null && typeof language !== "string") {
      throw new SegmentStateError("the state's code block cannot be read");
    }
    this.number = checkedCount(number);
    this.part = checkedCount(part);
    this.fence = fence;
    this.fenceLength = checkedCount(fenceLength);
    this.language = language;
    this.depth = checkedCount(depth);
    this.inString = inString === true;
    this.isEscaped = isEscaped === true;
  }
};

// src/segmenter/structure.ts
var GO_ON = -1;
var blankLines = /(?:[ \t]*\r?\n)+/y;
var indentAt = /[ \t]*/y;
function blankEnd(text, at) {
  blankLines.lastIndex = at;
  return blankLines.test(text) ? blankLines.lastIndex : 0;
}
var PHASES = [
  "line",
  // at the beginning of a line that is not understood yet
  "flow",
  "heading",
  "item",
  "afterItem",
  // at the beginning of the line after a line of an item, which may go on
  "table",
  "afterRow",
  "fenceInfo",
  // in the line that opens a block, part of which is out already
  "code",
  "object"
];
var StructureRule = class extends Rule {
  #phase = "line";
  #scan = 0;
  /** What is out of the line, or in flow of what may become an object, in which the held text begins; null: too much. */
  #head = "";
  /** The end of a block was found, and is about to be taken. */
  #isClosed = false;
  #block = new Block();
  find(held) {
    for (; ; ) {
      const end = this.#step(held);
      if (end !== GO_ON) return end;
    }
  }
  #step(held) {
    switch (this.#phase) {
      case "line":
        return this.#line(held);
      case "flow":
        return this.#flow(held);
      case "heading": {
        const newline = held.indexOf("\n", this.#scan);
        if (newline < 0) this.#scan = held.length;
        return newline + 1;
      }
      case "item":
        return this.#toNextLine(held, "afterItem");
      case "afterItem":
        return this.#afterItem(held);
      case "table":
        return this.#toNextLine(held, "afterRow");
      case "afterRow":
        return this.#goesOn(held, "table", "table");
      case "fenceInfo":
        return this.#fenceInfo(held);
      case "code":
        return this.#code(held);
      case "object": {
        const [end, scan] = this.#block.objectEnd(held, this.#scan);
        this.#scan = scan;
        this.#isClosed = end > 0;
        return end;
      }
    }
  }
  #turn(phase, scan, head = "") {
    this.#phase = phase;
    this.#scan = scan;
    this.#head = head;
    return GO_ON;
  }
  #line(held) {
    const start = this.#scan;
    const head = this.#head;
    if (start === held.length) return 0;
    if (!start && !head) {
      const plain = plainLineEnd(held);
      if (plain) {
        this.#turn("flow", 0);
        return plain;
      }
    }
    if (start || !head) {
      const blank = blankEnd(held, start);
      if (blank) return this.#turn("line", blank);
    }
    if (head === null) return this.#turn("flow", start);
    const line = head + held.slice(start);
    const kind = kindOf2(line);
    switch (kind) {
      case "undecided":
        return 0;
      case "blank":
        return this.#turn("line", held.indexOf("\n", start) + 1);
      case "fence":
        if (start) return start;
        this.#block.openFence(line);
        return this.#turn("code", held.indexOf("\n") + 1);
      case "object": {
        const brace = line.indexOf("{");
        const place = start + brace - head.length;
        return place > 0 ? place : this.#openObject(head.slice(brace));
      }
      case "flow":
        if (head.includes("\n")) return this.#turn("line", 0, head.slice(head.lastIndexOf("\n") + 1));
        return this.#turn("flow", start);
      default:
        return this.#turn(kind, start);
    }
  }
  #flow(held) {
    if (this.#head) {
      const match = objectAt(this.#head + held, 0);
      if (match !== "no") return match === "partial" ? 0 : this.#openObject(this.#head);
      const newline = this.#head.lastIndexOf("\n");
      return newline >= 0 ? this.#turn("line", 0, this.#head.slice(newline + 1)) : this.#turn("flow", 0);
    }
    const scan = this.#scan;
    if (!scan || " 	\r".includes(held[scan - 1])) {
      const blank = blankEnd(held, 0);
      if (blank) return this.#turn("line", blank);
    }
    const [end, further] = sentenceEnd(held, scan);
    const limit = end || held.length;
    for (let brace = held.indexOf("{", scan); brace >= 0 && brace < limit; brace = held.indexOf("{", brace + 1)) {
      const match = objectAt(held, brace);
      if (match === "no") continue;
      if (match === "partial") {
        this.#scan = Math.min(further, brace);
        return 0;
      }
      if (!brace) return this.#openObject("");
      if (isBoundary(characterBefore(held, brace), "{")) return brace;
    }
    if (!end) this.#scan = further;
    return end;
  }
  #openObject(outAlready) {
    this.#block.openObject(outAlready);
    return this.#turn("object", 0);
  }
  #toNextLine(held, phase) {
    const newline = held.indexOf("\n", this.#scan);
    if (newline >= 0) return this.#turn(phase, newline + 1);
    this.#scan = held.length;
    return 0;
  }
  #afterItem(held) {
    const start = this.#scan;
    indentAt.lastIndex = start;
    indentAt.test(held);
    const end = indentAt.lastIndex;
    if (end === held.length) return 0;
    const indent = held.slice(start, end);
    if (indent === "" || indent === " ") return start;
    return this.#goesOn(held, "flow", "item");
  }
  #goesOn(held, kind, phase) {
    const next = kindOf2(held.slice(this.#scan));
    if (next === "undecided") return 0;
    return next === kind ? this.#turn(phase, this.#scan) : this.#scan;
  }
  #fenceInfo(held) {
    const newline = held.indexOf("\n", this.#scan);
    if (newline < 0) {
      this.#scan = held.length;
      return 0;
    }
    if (!this.#block.learnFence((this.#head ?? "") + held.slice(0, newline + 1))) {
      this.#isClosed = true;
      return newline + 1;
    }
    return this.#turn("code", newline + 1);
  }
  #code(held) {
    if (this.#isClosed) return this.#scan;
    const [end, scan] = this.#block.closingLine(held, this.#scan, this.#head);
    this.#scan = scan;
    this.#isClosed = end > 0;
    return end;
  }
  take(text, out) {
    if (this.#isClosed) {
      this.#part(text, true, out);
      return;
    }
    out.push({ text, isCode: false });
    this.#turn(this.#phase === "flow" && !text.endsWith("\n") ? "flow" : "line", 0);
  }
  leave(text, atEnd, out) {
    const scan = this.#scan;
    this.#scan = Math.max(0, scan - text.length);
    switch (this.#phase) {
      case "line":
      case "afterItem":
      case "afterRow":
        this.#leaveLine(text, scan, out);
        return;
      case "flow": {
        out.push({ text, isCode: false });
        const known = (this.#head ?? "") + text;
        const brace = known.lastIndexOf("{");
        this.#head = brace >= 0 && objectAt(known, brace) === "partial" ? known.slice(brace) : "";
        this.#scan = 0;
        return;
      }
      case "fenceInfo":
        this.#head = headOf((this.#head ?? "") + text);
        this.#block.learnFence(this.#head);
        this.#part(text, false, out);
        return;
      case "code":
        this.#head = joined(scan ? "" : this.#head, text.slice(scan));
        this.#part(text, atEnd && this.#block.isClosing(this.#head), out);
        return;
      case "object":
        this.#part(text, this.#block.depth === 0 && scan > 0 && scan <= text.length, out);
        return;
      default:
        out.push({ text, isCode: false });
    }
  }
  #leaveLine(text, scan, out) {
    const head = scan ? "" : this.#head;
    const rest = text.slice(scan);
    this.#phase = "line";
    this.#head = joined(head, rest);
    if (rest && head !== null && fenceOf(head + rest)) {
      if (scan) out.push({ text: text.slice(0, scan), isCode: false });
      this.#block.openFence(head + rest);
      this.#phase = "fenceInfo";
      this.#head = headOf(head + rest);
      this.#part(rest, false, out);
      return;
    }
    out.push({ text, isCode: false });
  }
  #part(text, isLast, out) {
    out.push(this.#block.nextPart(text, isLast));
    if (isLast) {
      this.#isClosed = false;
      this.#turn(text.endsWith("\n") ? "line" : "flow", 0);
    }
  }
  save() {
    return [this.#phase, this.#scan, this.#head, this.#block.save()];
  }
  load(values, held) {
    const [phase, scan, head, block] = values;
    if (!PHASES.includes(phase) || head !== null && typeof head !== "string") {
      throw new SegmentStateError("the state's phase cannot be read");
    }
    this.#phase = phase;
    this.#scan = checkedPlace(scan, held);
    this.#head = head;
    this.#block.load(block);
  }
};

// src/segmenter/tokens.ts
var MAX_SPACES = 15;
var MAX_LENGTH = 16;
var withoutSpaces2 = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/uy;
var word = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/uy;
function sortAt(text, at) {
  const unit = text.charCodeAt(at);
  if (unit < 128) {
    if (unit >= 9 && unit <= 13 || unit === 32) return 0 /* Space */;
    const isWord2 = unit >= 48 && unit <= 57 || unit >= 65 && unit <= 90 || unit === 95 || unit >= 97 && unit <= 122;
    return isWord2 ? 1 /* Word */ : 2 /* Mark */;
  }
  if (isSpace(text, at)) return 0 /* Space */;
  withoutSpaces2.lastIndex = word.lastIndex = at;
  const isWord = word.test(text);
  if (withoutSpaces2.test(text)) return isWord ? 3 /* Single */ : 4 /* SingleMark */;
  return isWord ? 1 /* Word */ : 2 /* Mark */;
}
function goesOn(sort, next) {
  return next === sort || sort === 2 /* Mark */ && next === 4 /* SingleMark */;
}
function tokenEnd(text, at) {
  const length = text.length;
  let end = at;
  for (let spaces = 0; spaces < MAX_SPACES && end < length && sortAt(text, end) === 0 /* Space */; spaces += 1) {
    end = graphemeEnd(text, end);
  }
  if (end >= length) return 0;
  const sort = sortAt(text, end);
  const limit = sort === 1 /* Word */ || sort === 2 /* Mark */ ? MAX_LENGTH : 1;
  for (let count = 0; count < limit && end < length && goesOn(sort, sortAt(text, end)); count += 1) {
    end = graphemeEnd(text, end);
  }
  return end < length ? end : 0;
}
var TokenRule = class extends Rule {
  #tokens;
  #seen = 0;
  #scan = 0;
  constructor(tokens) {
    super();
    this.#tokens = tokens;
  }
  find(held) {
    for (let end = tokenEnd(held, this.#scan); end; end = tokenEnd(held, end)) {
      this.#scan = end;
      this.#seen += 1;
      if (this.#seen === this.#tokens) return end;
    }
    return 0;
  }
  take(text, out) {
    this.#seen = this.#scan = 0;
    super.take(text, out);
  }
  save() {
    return [this.#seen, this.#scan];
  }
  load(values, held) {
    this.#seen = checkedCount(values[0]);
    this.#scan = checkedPlace(values[1], held);
    if (this.#seen >= this.#tokens) throw new SegmentStateError(`${this.#seen} tokens seen of ${this.#tokens}`);
  }
};

// src/segmenter/width.ts
var withoutSpaces3 = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;
var closing2 = /^[、。，．！？：；」』）】〉》〕］｝ー…]/u;
var WidthRule = class extends Rule {
  #measure;
  #maxWidth;
  #line = 1;
  /** What is out of the line already. */
  #out = "";
  /** Where the first word begins that is not known to fit. */
  #scan = 0;
  constructor(measure, maxWidth) {
    super();
    this.#measure = measure;
    this.#maxWidth = maxWidth;
  }
  find(held) {
    while (this.#scan < held.length) {
      const start = this.#scan;
      const end = wordEnd(held, start);
      if (!this.#fits(held.slice(0, end))) {
        if (start) return start;
        if (!this.#out) return this.#fittingPart(held);
        this.#nextLine();
        continue;
      }
      if (held[end - 1] === "\n") return end;
      if (end === held.length) return 0;
      this.#scan = end;
    }
    return 0;
  }
  #fits(text) {
    return this.#measure(withoutEnd(this.#out + text)) <= this.#maxWidth;
  }
  /** The most graphemes of a word that is too wide for any line, at least one; 0: the next one may still grow, or ends it. */
  #fittingPart(held, isWhole = false) {
    let cut = graphemeEnd(held, 0);
    for (; ; ) {
      if (cut >= held.length) return 0;
      const next = graphemeEnd(held, cut);
      if (!this.#fits(held.slice(0, next))) return isWhole || next < held.length ? cut : 0;
      cut = next;
    }
  }
  /** Where a word is cut that leaves although its end is too wide. */
  #cutOf(text) {
    return this.#fits(text) ? 0 : this.#fittingPart(text, true);
  }
  #nextLine() {
    this.#line += 1;
    this.#out = "";
    this.#scan = 0;
  }
  unfinished(held) {
    let start = 0;
    for (let end = wordEnd(held, 0); end < held.length; end = wordEnd(held, end)) start = end;
    return isSpace(held, held.length - 1) ? held.length : start;
  }
  take(text, out) {
    out.push({ text, isCode: false, fields: { line: this.#line, last: true } });
    this.#nextLine();
  }
  leave(text, atEnd, out) {
    let rest = text;
    for (let cut = this.#cutOf(rest); cut; cut = this.#cutOf(rest)) {
      this.take(rest.slice(0, cut), out);
      rest = rest.slice(cut);
    }
    if (atEnd) {
      this.take(rest, out);
      return;
    }
    out.push({ text: rest, isCode: false, fields: { line: this.#line, last: false } });
    this.#out += rest;
    this.#scan = 0;
  }
  save() {
    return [this.#line, this.#out];
  }
  load(values, _held) {
    if (typeof values[1] !== "string") throw new SegmentStateError("the state's line cannot be read");
    this.#line = checkedCount(values[0]);
    this.#out = values[1];
  }
};
function wordEnd(text, start) {
  let at = start;
  while (at < text.length && !isSpace(text, at)) {
    const next = graphemeEnd(text, at);
    const isSingle = withoutSpaces3.test(characterAt(text, at));
    at = next;
    const following = characterAt(text, at);
    if (following && !closing2.test(following) && (isSingle || withoutSpaces3.test(following))) return at;
  }
  while (at < text.length && isSpace(text, at)) {
    if (text[at] === "\n") return at + 1;
    at += 1;
  }
  return at;
}
function withoutEnd(line) {
  let end = line.length;
  while (end && isSpace(line, end - 1)) end -= 1;
  return line.slice(0, end);
}

// src/segmenter/segmenter.ts
var MAX_RAW_BYTES = 8 * 1024;
var RAW_TAIL = 128;
var VERSION = 1;
var anySurrogate = /[\ud800-\udfff]/;
var loneSurrogates = /\p{Surrogate}/gu;
var Segmenter = class {
  #plan;
  #rule;
  #held = "";
  /** The first half of a character whose second half is still to come. */
  #half = "";
  #isFirst;
  #dueMs = null;
  #fedMs = Number.NEGATIVE_INFINITY;
  #fedFrom = 0;
  #restored = false;
  /** Throws RangeError for options, SegmentStateError when `state` is not what `save` gave with the same options. */
  constructor(options = {}, state) {
    this.#plan = planOf(options);
    this.#rule = ruleOf(this.#plan);
    this.#isFirst = this.#plan.firstImmediately;
    if (state !== void 0) this.#load(state);
  }
  /** At most `maxBytes`. */
  get heldBytes() {
    return byteLength(this.#held);
  }
  /** The segments that `text` completes. Ask `dueMs` afterwards: the first text is due at once. */
  feed(text, nowMs) {
    const whole = this.#wellFormed(text);
    if (!whole) return [];
    if (this.#plan.mode === "raw") return rawSegments(whole);
    if (this.#restored) this.#clampDue(nowMs);
    const oldLength = this.#held.length;
    const out = [];
    const held = this.#held + whole;
    const start = this.#cutUp(held, out);
    this.#held = held.slice(start);
    this.#fedMs = nowMs;
    this.#fedFrom = Math.max(0, oldLength - start);
    if (!this.#held) this.#dueMs = null;
    else if (this.#dueMs === null || start >= oldLength) {
      this.#dueMs = this.#isFirst ? nowMs : nowMs + this.#plan.maxDelayMs;
    }
    return out;
  }
  #wellFormed(text) {
    if (!this.#half && !anySurrogate.test(text)) return text;
    let whole = this.#half + text;
    this.#half = "";
    if (/[\ud800-\udbff]$/.test(whole)) {
      this.#half = whole.slice(-1);
      whole = whole.slice(0, -1);
    }
    return whole.replace(loneSurrogates, "\uFFFD");
  }
  /** Everything that is decided leaves; returns where the rest begins, which is within the limit. */
  #cutUp(text, out) {
    let start = 0;
    while (start < text.length) {
      const end = endWithin(text, start, this.#plan.maxBytes);
      const held = text.slice(start, end);
      let cut = this.#rule.find(held);
      if (cut) this.#rule.take(held.slice(0, cut), out);
      else if (end < text.length) {
        cut = this.#rule.force(held, characterAt(text, end));
        this.#rule.leave(held.slice(0, cut), false, out);
      } else break;
      this.#isFirst = false;
      start += cut;
    }
    return start;
  }
  /**
   * When `tick` must be called, on the clock of `nowMs`; in the past or now: at once. Null: nothing is held.
   * After a restore it is 0 until the first `feed` or `tick` tells the time.
   */
  dueMs() {
    return this.#restored && this.#held ? 0 : this.#dueMs;
  }
  /** What has waited long enough; of what is likely still growing, only what came long enough ago. */
  tick(nowMs) {
    if (this.#restored) this.#clampDue(nowMs);
    if (this.#dueMs === null || nowMs < this.#dueMs) return [];
    const keepUntil = this.#fedMs + this.#plan.maxDelayMs;
    let end = this.#held.length;
    if (nowMs < keepUntil) {
      const tail = this.#rule.unfinished(this.#held);
      if (tail >= this.#fedFrom) end = tail;
    }
    this.#dueMs = end === this.#held.length ? null : keepUntil;
    return this.#leave(end, false);
  }
  /** All that is held, because another kind follows or the text ends; more text may follow. */
  flush() {
    this.#dueMs = null;
    this.#restored = false;
    const out = [];
    if (this.#half) {
      this.#half = "";
      out.push(...this.feed("\uFFFD", this.#fedMs));
      this.#dueMs = null;
    }
    return [...out, ...this.#leave(this.#held.length, true)];
  }
  #leave(end, atEnd) {
    const out = [];
    if (end) {
      this.#rule.leave(this.#held.slice(0, end), atEnd, out);
      this.#held = this.#held.slice(end);
      this.#isFirst = false;
    }
    return out;
  }
  /** A few KiB at most; the held text is in it. Due times are those of the caller's clock. */
  save() {
    const { mode } = this.#plan;
    return JSON.stringify([VERSION, mode, this.#isFirst, this.#dueMs, this.#held, this.#half, this.#rule.save()]);
  }
  #load(state) {
    const [version, mode, isFirst, dueMs, held, half, rule] = parsedState(state);
    if (version !== VERSION || mode !== this.#plan.mode) {
      throw new SegmentStateError(`the state is of version ${String(version)} and mode ${String(mode)}`);
    }
    if (typeof held !== "string" || typeof half !== "string" || !Array.isArray(rule)) {
      throw new SegmentStateError("the segmenter's state cannot be read");
    }
    if (byteLength(held) > this.#plan.maxBytes) throw new SegmentStateError("more is held than maxBytes");
    this.#rule.load(rule, held);
    this.#held = held;
    this.#half = half;
    this.#isFirst = isFirst === true;
    this.#dueMs = typeof dueMs === "number" ? dueMs : null;
    this.#restored = held !== "";
  }
  /** The saved time may be of another clock: nothing waits longer for that. */
  #clampDue(nowMs) {
    const latest = nowMs + this.#plan.maxDelayMs;
    this.#dueMs = this.#dueMs === null ? latest : Math.min(this.#dueMs, latest);
    this.#restored = false;
  }
};
function parsedState(state) {
  let values;
  try {
    values = JSON.parse(state);
  } catch {
    values = null;
  }
  if (!Array.isArray(values)) throw new SegmentStateError("the segmenter's state cannot be read");
  return values;
}
function ruleOf(plan) {
  switch (plan.mode) {
    case "tokens":
      return new TokenRule(plan.tokens);
    case "sentence":
      return new SentenceRule();
    case "structure":
      return new StructureRule();
    case "width":
      return new WidthRule(plan.measure, plan.maxWidth);
    default:
      return plan.pattern ? new PatternRule(plan.pattern) : new Rule();
  }
}
function rawSegments(text) {
  const out = [];
  for (let start = 0; start < text.length; ) {
    let end = endWithin(text, start, MAX_RAW_BYTES);
    if (end < text.length) {
      const tail = lastCharacters(text.slice(start, end), RAW_TAIL);
      end += (lastBoundary(tail, characterAt(text, end)) || tail.length) - tail.length;
    }
    out.push({ text: text.slice(start, end), isCode: false });
    start = end;
  }
  return out;
}

// src/segmenter/stream.ts
var LATE = /* @__PURE__ */ Symbol("late");
async function* segmentStream(source, options = {}) {
  const segmenter = new Segmenter(options);
  const text = options.text ? { of: options.text, rest: () => "" } : plainText();
  const chunks = iteratorOf(source);
  let isOver = false;
  const read2 = async () => {
    try {
      const result = await chunks.next();
      isOver = result.done === true;
      return result;
    } catch (error) {
      isOver = true;
      return new Failure(error);
    }
  };
  try {
    let next = read2();
    for (; ; ) {
      const got = await within(next, segmenter.dueMs());
      if (got === LATE) {
        yield* segmenter.tick(performance.now());
        continue;
      }
      if (got instanceof Failure) {
        yield* segmenter.flush();
        throw got.error;
      }
      if (got.done) break;
      yield* segmenter.feed(text.of(got.value) ?? "", performance.now());
      next = read2();
    }
    yield* segmenter.feed(text.rest(), performance.now());
    yield* segmenter.flush();
  } finally {
    if (!isOver) chunks.return?.().then(void 0, () => void 0);
  }
}
var Failure = class {
  constructor(error) {
    this.error = error;
  }
};
async function within(next, dueMs) {
  if (dueMs === null) return next;
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, Math.max(0, dueMs - performance.now()), LATE);
  });
  try {
    return await Promise.race([next, late]);
  } finally {
    clearTimeout(timer);
  }
}
function plainText() {
  const decoder2 = new TextDecoder();
  return {
    of: (chunk) => {
      if (typeof chunk === "string") return chunk;
      if (chunk instanceof Uint8Array) return decoder2.decode(chunk, { stream: true });
      throw new TypeError("a chunk is neither text nor bytes; say how to read it with the option `text`");
    },
    rest: () => decoder2.decode()
  };
}
function iteratorOf(source) {
  if (Symbol.asyncIterator in source) return source[Symbol.asyncIterator]();
  if (isWebStream(source)) return readerOf(source);
  const plain = source[Symbol.iterator]();
  return {
    next: async () => plain.next(),
    return: async () => plain.return?.() ?? { done: true, value: void 0 }
  };
}
function readerOf(stream) {
  const reader = stream.getReader();
  return {
    next: async () => {
      const { done, value } = await reader.read();
      return done ? { done: true, value: void 0 } : { done: false, value };
    },
    return: async () => {
      await reader.cancel();
      return { done: true, value: void 0 };
    }
  };
}
function isWebStream(source) {
  return "getReader" in source;
}

// src/stores/fallback.ts
var StoreError = class extends Error {
  constructor() {
    super(...arguments);
    this.name = "StoreError";
  }
};
var FallbackStore = class {
  #backend;
  /** What the backend refused; newer than what it has. */
  #memory = /* @__PURE__ */ new Map();
  #isReported = false;
  constructor(backend, isShared) {
    this.#backend = backend;
    this.isShared = isShared;
  }
  async load(session) {
    const newer = this.#memory.get(session);
    if (newer) return newer;
    try {
      return placeOf2(await this.#backend.read(session));
    } catch (cause) {
      this.#report("read", cause);
      return null;
    }
  }
  async save(session, place) {
    try {
      await this.#backend.write(session, place);
      this.#memory.delete(session);
    } catch (cause) {
      this.#memory.set(session, place);
      this.#report("written", cause);
    }
  }
  #report(what, cause) {
    if (this.#isReported) return;
    this.#isReported = true;
    const why = cause instanceof Error ? cause.name : "unknown";
    throw new StoreError(`the place cannot be ${what} (${why}); it is kept until the page is closed`, { cause });
  }
};
function placeOf2(value) {
  if (!isRecord(value)) return null;
  const { client, user, cursor, inputs } = value;
  if (typeof client !== "string" || !client || !isTextOrNull(user) || !isTextOrNull(cursor)) return null;
  return Array.isArray(inputs) && inputs.every(isInput) ? { client, user, cursor, inputs } : null;
}
var isRecord = (value) => typeof value === "object" && value !== null;
var isTextOrNull = (value) => value === null || typeof value === "string";
var isInput = (value) => isRecord(value) && (value.seq === null || Number.isSafeInteger(value.seq)) && isRecord(value.payload);

// src/stores/indexed_db.ts
var PLACES = "places";
var BY_AGE = "savedAt";
var WEEK_MS = 7 * 24 * 36e5;
function indexedDbStore(options = {}) {
  return new FallbackStore(new Database(options), true);
}
var Database = class {
  #name;
  #maxAgeMs;
  #timeoutMs;
  #factory;
  #connection = null;
  constructor(options) {
    this.#name = options.name ?? "relayrouter";
    this.#maxAgeMs = options.maxAgeMs ?? WEEK_MS;
    this.#timeoutMs = options.timeoutMs ?? 2e3;
    this.#factory = () => options.indexedDB ?? globalThis.indexedDB;
  }
  async read(session) {
    let record;
    await this.#transact("readonly", (places) => {
      const request = places.get(session);
      request.onsuccess = () => {
        record = request.result;
      };
    });
    return record?.place ?? null;
  }
  async write(session, place) {
    await this.#transact("readwrite", (places) => {
      places.put({ place, [BY_AGE]: Date.now() }, session);
    });
  }
  async #transact(mode, use) {
    const isNew = this.#connection === null;
    try {
      await this.#once(mode, use);
    } catch (error) {
      this.#connection = null;
      if (isNew || isQuota(error)) throw error;
      await this.#once(mode, use);
    }
  }
  async #once(mode, use) {
    this.#connection ??= this.#open();
    const connection = await this.#connection;
    const transaction = connection.transaction(PLACES, mode);
    use(transaction.objectStore(PLACES));
    transaction.commit?.();
    await this.#settled("it did not write", (resolve, reject) => {
      transaction.oncomplete = () => resolve(void 0);
      transaction.onabort = () => reject(transaction.error ?? new DOMException("aborted", "AbortError"));
    });
  }
  async #open() {
    const connection = await this.#settled("it did not open", (resolve, reject) => {
      const request = this.#factory().open(this.#name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(PLACES).createIndex(BY_AGE, BY_AGE);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    const forget = () => {
      this.#connection = null;
    };
    connection.onclose = forget;
    connection.onversionchange = () => {
      connection.close();
      forget();
    };
    this.#dropOld(connection);
    return connection;
  }
  #dropOld(connection) {
    const transaction = connection.transaction(PLACES, "readwrite");
    const old = IDBKeyRange.upperBound(Date.now() - this.#maxAgeMs);
    const request = transaction.objectStore(PLACES).index(BY_AGE).openCursor(old);
    request.onsuccess = () => {
      request.result?.delete();
      request.result?.continue();
    };
    request.onerror = (event) => event.preventDefault();
  }
  async #settled(late, begin) {
    let timer;
    try {
      return await new Promise((resolve, reject) => {
        timer = setTimeout(() => reject(new DOMException(late, "TimeoutError")), this.#timeoutMs);
        begin(resolve, reject);
      });
    } finally {
      clearTimeout(timer);
    }
  }
};
var isQuota = (error) => error instanceof Error && error.name === "QuotaExceededError";

// src/stores/session_storage.ts
function sessionStorageStore(options = {}) {
  const prefix = options.prefix ?? "relayrouter:";
  const storage = () => options.storage ?? globalThis.sessionStorage;
  return new FallbackStore(
    {
      read: async (session) => {
        const text = storage().getItem(prefix + session);
        return text === null ? null : parsed(text);
      },
      write: async (session, place) => storage().setItem(prefix + session, JSON.stringify(place))
    },
    false
  );
}
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// src/stores/json_store.ts
function jsonStore(options) {
  return new FallbackStore(
    {
      read: async (session) => parsed(await options.read(session) ?? "null"),
      write: async (session, place) => options.write(session, JSON.stringify(place))
    },
    options.isShared ?? false
  );
}
export {
  AuthError,
  ClosedError,
  ConflictError,
  ForbiddenError,
  FrameBatch,
  Lateness,
  MemoryStore,
  NotFoundError,
  ProtocolError,
  QueueFullError,
  RefusedError,
  RelayError,
  SegmentStateError,
  Segmenter,
  Session,
  StoreError,
  SupersededError,
  TextNodes,
  TooLargeError,
  connect,
  defaultPlatform,
  indexedDbStore,
  jsonStore,
  pageClock,
  renderText,
  segmentStream,
  sessionStorageStore
};
