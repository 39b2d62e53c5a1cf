/*! RelayRouter, Apache-2.0 */

// src/errors.ts
var RelayError = class extends Error {
  constructor(code, message, retryable = false) {
    super(message);
    this.code = code;
    this.retryable = retryable;
    this.name = "RelayError";
  }
};
var AuthError = class extends RelayError {
  constructor(message, code = "unauthenticated") {
    super(code, message);
    this.name = "AuthError";
  }
};
var ForbiddenError = class extends RelayError {
  constructor(message, code = "forbidden") {
    super(code, message);
    this.name = "ForbiddenError";
  }
};
var NotFoundError = class extends RelayError {
  constructor(message, code = "not_found") {
    super(code, message);
    this.name = "NotFoundError";
  }
};
var SupersededError = class extends RelayError {
  constructor() {
    super("superseded", "a newer connection of this client took over");
    this.name = "SupersededError";
  }
};
var TooLargeError = class extends RelayError {
  constructor(message) {
    super("too_large", message);
    this.name = "TooLargeError";
  }
};
var QueueFullError = class extends RelayError {
  constructor(message) {
    super("queue_full", message, true);
    this.name = "QueueFullError";
  }
};
var ConflictError = class extends RelayError {
  constructor(message) {
    super("conflict", message);
    this.name = "ConflictError";
  }
};
var RefusedError = class extends RelayError {
  constructor(code, message) {
    super(code, message);
    this.name = "RefusedError";
  }
};
var ClosedError = class extends RelayError {
  constructor(message = "the session is closed") {
    super("closed", message);
    this.name = "ClosedError";
  }
};
var ProtocolError = class extends RelayError {
  constructor(message) {
    super("protocol", message);
    this.name = "ProtocolError";
  }
};

// src/hex.ts
var hex = (data) => [...data].map((byte) => byte.toString(16).padStart(2, "0")).join("");

// src/digests.ts
var ROUNDS = 64;
var fraction = (x) => x % 1 * 2 ** 32 | 0;
var turn = (x, n) => x >>> n | x << 32 - n;
function sha256(data) {
  const primes = [];
  for (let n = 2; primes.length < ROUNDS; n++) if (primes.every((prime) => n % prime)) primes.push(n);
  const rounds = primes.map((prime) => fraction(prime ** (1 / 3)));
  let state = primes.slice(0, 8).map((prime) => fraction(prime ** (1 / 2)));
  const padded = new Uint8Array(data.length + 72 >> 6 << 6);
  const view = new DataView(padded.buffer);
  padded.set(data);
  padded[data.length] = 128;
  view.setUint32(padded.length - 4, data.length << 3);
  for (let block = 0; block < padded.length; block += 64) {
    let [a, b, c, d, e, f, g, h] = state;
    const w = [];
    for (let i = 0; i < ROUNDS; i++) {
      const [old, recent] = [w[i - 15], w[i - 2]];
      w[i] = i < 16 ? view.getInt32(block + 4 * i) : w[i - 16] + w[i - 7] + (turn(old, 7) ^ turn(old, 18) ^ old >>> 3) + (turn(recent, 17) ^ turn(recent, 19) ^ recent >>> 10) | 0;
      h += (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + (e & f ^ ~e & g) + rounds[i] + w[i];
      d += h;
      h += (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + (a & b ^ a & c ^ b & c);
      [a, b, c, d, e, f, g, h] = [h | 0, a, b, c, d | 0, e, f, g];
    }
    state = [a, b, c, d, e, f, g, h].map((word2, i) => word2 + state[i] | 0);
  }
  state.forEach((word2, i) => {
    view.setInt32(4 * i, word2);
  });
  return hex(padded.subarray(0, 32));
}

// src/platform.ts
function defaultPlatform() {
  const scope = globalThis;
  return {
    now: () => performance.now(),
    wallNow: Date.now,
    after: (ms, fn) => {
      const timer = setTimeout(fn, ms);
      return () => clearTimeout(timer);
    },
    random: Math.random,
    randomHex: (bytes) => hex(crypto.getRandomValues(new Uint8Array(bytes))),
    sha256: async (data) => {
      if (!crypto.subtle) return sha256(data);
      return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", data)));
    },
    WebSocket: scope.WebSocket ?? null,
    fetch: scope.fetch ? (url, init) => fetch(url, init) : null,
    isOnline: () => scope.navigator?.onLine !== false,
    onPage: (listener) => listenToPage(scope, listener),
    // A page that may not use locks (an opaque origin) has no duplicate to fear either.
    lock: async (name) => {
      const locks = scope.navigator?.locks;
      return locks ? webLock(locks, name).catch(() => none) : ownLock(name);
    }
  };
}
var taken = /* @__PURE__ */ new Set();
function ownLock(name) {
  if (taken.has(name)) return null;
  taken.add(name);
  return () => taken.delete(name);
}
var EVENTS = {
  online: "online",
  offline: "offline",
  pageshow: "restored",
  pagehide: "leaving"
};
function listenToPage(scope, listener) {
  const { document } = scope;
  const onVisibility = () => listener(document?.visibilityState === "hidden" ? "hidden" : "visible");
  const onEvent = ({ type, persisted }) => {
    const event = EVENTS[type];
    if (event && (persisted || event !== "restored")) listener(event);
  };
  const each = (does) => {
    document?.[does]("visibilitychange", onVisibility);
    for (const name in EVENTS) scope[does]?.(name, onEvent);
  };
  each("addEventListener");
  return () => each("removeEventListener");
}
var webLock = (locks, name) => new Promise((resolve, reject) => {
  const hold = (lock) => lock && new Promise(resolve);
  locks.request(name, { ifAvailable: true }, hold).then(() => resolve(null), reject);
});
var none = () => void 0;
var sleep = (platform, ms) => new Promise((resolve) => platform.after(ms, resolve));
function createGate() {
  let waiting = [];
  return {
    wait: () => new Promise((resolve) => waiting.push(resolve)),
    open() {
      for (const go of waiting) go();
      waiting = [];
    }
  };
}
function createTimer(platform) {
  let cancel = null;
  return {
    start(ms, fn) {
      cancel ??= platform.after(ms, () => {
        cancel = null;
        fn();
      });
    },
    stop() {
      cancel?.();
      cancel = null;
    }
  };
}
async function inTime(platform, ms, act, onLate = none) {
  let cancel = none;
  const late = new Promise((_, reject) => {
    cancel = platform.after(ms, () => {
      onLate();
      reject(new Error("late"));
    });
  });
  return Promise.race([Promise.resolve().then(act), late]).finally(cancel);
}

// src/messages.ts
var BadFrame = class extends Error {
};
var NO_ENVELOPE = "no envelope";
var isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
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
  const { type, seq: told, first_seq, timestamp, payload: content } = objectOf(envelope);
  const payload = objectOf(content);
  const { kind, run, at } = payload;
  const isControl = type === "control";
  const seq = integer(told, "seq");
  integer(at, "at");
  if (typeof type !== "string" || typeof kind !== "string" || !isControl && seq === null)
    throw new BadFrame(NO_ENVELOPE);
  return {
    isControl,
    kind,
    seq,
    firstSeq: integer(first_seq, "first_seq") ?? seq,
    timestamp: integer(timestamp, "timestamp") ?? 0,
    run: typeof run === "string" ? run : null,
    payload
  };
}
var control = (payload) => JSON.stringify({ type: "control", payload });
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

// src/acks.ts
function createAcks(core) {
  const { platform, settings } = core;
  let _applied = null;
  let _bytes = 0;
  const _timer = createTimer(platform);
  const self = {
    note(cursor, bytes) {
      const { ackBytes, ackAfter } = settings.timing;
      _applied = cursor;
      _bytes += bytes;
      if (_bytes >= ackBytes) self.writeOut();
      else _timer.start(ackAfter, self.writeOut);
    },
    /** To the connection that is live, if it is on the same line. */
    writeOut() {
      const applied = _applied;
      const live = core.conductor.current;
      self.stop();
      if (applied && live?.isDuplex && live.lineId === applied.lineId)
        live.send(control({ kind: "ack", seq: applied.seq }));
      _applied = null;
      _bytes = 0;
    },
    stop: _timer.stop
  };
  return self;
}

// src/backoff.ts
var MAX_EXPONENT = 30;
var SPREAD = 0.25;
function createBackoff({ platform, settings }) {
  const { random } = platform;
  const { backoffBase, backoffMax } = settings.timing;
  const self = {
    /** Since a connection was stable. */
    failures: 0,
    /** Counts one failure. Never below `atLeastMs`, and then at most a quarter above. */
    nextDelayMs(atLeastMs = 0) {
      const ceiling = Math.min(backoffMax, backoffBase * 2 ** Math.min(self.failures++, MAX_EXPONENT));
      return atLeastMs > 0 ? self.spread(atLeastMs) : random() * ceiling;
    },
    /** A moment that a server named for many clients: never earlier, at most a quarter later. */
    spread(ms) {
      return ms * (1 + SPREAD * random());
    }
  };
  return self;
}

// src/close_codes.ts
var TOO_BIG = 1009;
var INTERNAL = 1011;
var UNAUTHENTICATED = 4401;
var SUPERSEDED = 4409;
var isBusyCode = (code) => code === 1013 || code === 4429;
function finalError(code, reason) {
  const message = reason || `closed with ${code}`;
  switch (code) {
    case 4403:
      return new ForbiddenError(message);
    case 4404:
      return new NotFoundError(message);
    case SUPERSEDED:
      return new SupersededError();
    case 1e3:
      return reason === "moved" ? null : new RefusedError("closed", message);
    case 1008:
      return new RefusedError("policy", message);
    case 1002:
    case 1003:
    case 1007:
      return new ProtocolError(message);
    default:
      return null;
  }
}

// src/endings.ts
var broken = (reason) => ({ code: 0, reason });
var NO_GATEWAY = broken("no gateway answered");
var BROKEN = broken("the connection broke");
var isBroken = ({ code, afterMs, error }) => !code && afterMs === void 0 && !error;

// src/http.ts
function sessionUrl(base, { session }, what, query) {
  const given = Object.entries(query).filter(([, value]) => value != null && value !== false);
  const text = new URLSearchParams(given).toString();
  return `${base}/v1/sessions/${encodeURIComponent(session)}/${what}${text && `?${text}`}`;
}

// src/refusal.ts
var RETRY_MS = 500;
var passes = ({ retryable, code }) => retryable === true || code === "fenced";
var CLASSES = {
  unauthenticated: AuthError,
  forbidden: ForbiddenError,
  not_found: NotFoundError,
  gone: NotFoundError,
  too_large: TooLargeError,
  conflict: ConflictError
};
function refusalOf(payload) {
  const code = textOf(payload.code);
  const message = textOf(payload.message) || code || "refused";
  return CLASSES[code] ? new CLASSES[code](message, code) : new RefusedError(code, message);
}

// src/ask.ts
async function ask({ platform, settings }, { url, token }, what, query, { body, signal, waitMs = 0 } = {}) {
  const deadline = new AbortController();
  const abort = () => deadline.abort();
  const cancel = platform.after(waitMs + settings.timing.connectTimeout, abort);
  signal?.addEventListener("abort", abort);
  try {
    if (!platform.fetch || signal?.aborted) return NO_REPLY;
    const init = requestInit(token, deadline.signal);
    if (body) {
      init.method = "POST";
      init.body = JSON.stringify(body);
      init.headers = { ...init.headers, "Content-Type": JSON_TYPE };
    }
    return await readReply(await platform.fetch(sessionUrl(url, settings, what, query), init));
  } catch {
    return NO_REPLY;
  } finally {
    cancel();
    signal?.removeEventListener("abort", abort);
  }
}
var JSON_TYPE = "application/json";
var NO_REPLY = { isAnswered: false, status: 0, body: {}, refusal: null, afterMs: null };
function requestInit(token, signal, accept = JSON_TYPE) {
  const headers = { Accept: accept, ...token && { Authorization: `Bearer ${token}` } };
  return { headers, signal, redirect: "manual", cache: "no-store", credentials: "omit" };
}
async function readReply(response) {
  const body = objectOf(await response.json().catch(none));
  const refusal = response.ok ? null : objectOf(body.error);
  const isOurs = refusal ? textOf(refusal.code) : Object.keys(body).length;
  const afterMs = Number(response.headers.get("Retry-After") ?? NaN) * 1e3;
  const isBusy = BUSY.includes(response.status) && afterMs >= 0 && afterMs < Infinity;
  const reply = { ...NO_REPLY, isAnswered: true, afterMs: isBusy ? afterMs : null };
  return isOurs ? { ...reply, status: response.status, body, refusal } : reply;
}
var BUSY = [429, 503];
var TROUBLE = [408, 425];
function endingOf({ status, refusal, afterMs }) {
  if (!refusal) return afterMs === null ? NO_GATEWAY : { code: 0, reason: "busy", afterMs };
  const error = refusalOf(refusal);
  const reason = error.message;
  if (BUSY.includes(status)) return { code: 0, reason, afterMs };
  if (status === 401) return { code: UNAUTHENTICATED, reason };
  return status >= 500 || TROUBLE.includes(status) ? { code: INTERNAL, reason } : { code: 0, reason, error };
}
function closeOf(told) {
  const { code, reason } = objectOf(told);
  return { code: numberOf(code) ?? INTERNAL, reason: textOf(reason) };
}

// src/incoming.ts
function takeFrame(core, connection, envelope, bytes) {
  const { conductor, delivery, emitter, reception, speech } = core;
  const frame = readFrame(envelope);
  const { kind, payload, isControl } = frame;
  const afterMs = numberOf(payload.after_ms);
  if (!connection.isWelcome && kind !== "welcome" && !(isControl && kind === "error")) throw new BadFrame("no welcome");
  if (!isControl) {
    connection.pulse?.streaming(frame.run !== null && kind !== "run_end");
    return reception.take(connection, { frame, bytes });
  }
  switch (kind) {
    case "welcome": {
      const isFirst = !connection.isWelcome;
      reception.welcome(connection, frame);
      connection.welcomed(payload);
      if (!isFirst) return;
      conductor.welcomed(connection);
      core.head = numberOf(payload.head) ?? core.head;
      return speech.welcome(payload);
    }
    case "gap":
    case "forked":
    case "snapshot":
      return reception.take(connection, { frame, bytes });
    case "pong":
      return connection.pong();
    case "accepted":
    case "error":
      if (payload.what !== void 0) speech.answered(payload, kind === "accepted");
      else if (afterMs !== null) conductor.slot(connection, afterMs, false);
      return;
    case "ask_open":
      return delivery.opened(objectOf(payload.ask));
    case "reconnect_later":
      return conductor.slot(connection, afterMs ?? 0, true);
    case "expiring":
      return void renew(core, connection);
    case "rhythm":
      return emitter.emit("rhythm", payload);
    case "state":
      return emitter.emit("hook", payload);
  }
}
async function renew({ credentials, conductor }, connection) {
  if (!credentials.isRenewable) return;
  if (!connection.isDuplex) return conductor.slot(connection, 0, true);
  const token = await credentials.next().catch(() => null);
  if (token) connection.send(control({ kind: "auth", token }));
}
function endingOfError(error) {
  if (error instanceof ProtocolError) return { ...broken(error.message), error };
  if (error instanceof BadFrame) return broken(error.message);
  queueMicrotask(() => {
    throw error;
  });
  return broken("internal error");
}

// src/channel.ts
function reading(sink, read2) {
  const stop = new AbortController();
  const close = () => stop.abort();
  void read2(stop.signal).then((ending) => {
    if (!stop.signal.aborted && ending) sink.ended(ending);
    close();
  });
  return { close };
}

// src/poll.ts
var FIRST_WAIT_SECONDS = 0.1;
var LEAST_MS = 500;
var openPoll = (around, sink, query) => reading(sink, async (signal) => {
  const { platform, settings } = around;
  let { cursor: since, replaces } = query;
  for (let isFirst = true; ; isFirst = false) {
    const wait = isFirst ? FIRST_WAIT_SECONDS : settings.timing.pollWait / 1e3;
    const began = platform.now();
    const asked = { ...query, cursor: null, sdk: 1, limit: 500, since, replaces, wait };
    const reply = await ask(around, sink, "messages", asked, { signal, waitMs: wait * 1e3 });
    if (signal.aborted) return null;
    if (reply.refusal) return endingOf(reply);
    const { frames, close, connection, cursor } = reply.body;
    if (!Array.isArray(frames)) return NO_GATEWAY;
    if (isFirst) sink.opened();
    sink.heard();
    for (const frame of frames) {
      sink.frame(frame, JSON.stringify(frame).length);
      if (signal.aborted) return null;
    }
    since = textOf(cursor) || since;
    replaces = textOf(connection) || replaces;
    if (close) return closeOf(close);
    if (!isFirst && frames.length < 2 && platform.now() - began < LEAST_MS) await sleep(platform, LEAST_MS);
    await sink.room();
    if (signal.aborted) return null;
  }
});

// src/probe.ts
var LATE_MS = 1e3;
var MAX_ASKED = 3;
var SAMPLE_MS = 1e4;
var SAMPLE_BAD_MS = 2500;
var COMMENT_MS = 15e3;
var PING = control({ kind: "ping" });
function createPulse({ platform, settings, quality }, connection, heartbeatMs) {
  const { now, wallNow } = platform;
  const { keepAlive, timing } = settings;
  const { probeTimeout, runQuiet } = timing;
  const _silenceMs = Math.max(COMMENT_MS, heartbeatMs) + 2 * probeTimeout;
  let _isSampledOften = false;
  let _isStreaming = false;
  let _heardAt = now();
  let _sentAt = _heardAt;
  let _lastAskedAt = _heardAt;
  let _askedAt = null;
  let _asked = 0;
  let _cancelTimer = none;
  let _isStopped = false;
  const self = {
    /** It is us who do not read. */
    isHeld: false,
    get silentMs() {
      return now() - _heardAt;
    },
    heard() {
      _heardAt = now();
      _asked = 0;
    },
    sent() {
      _sentAt = now();
    },
    pong() {
      if (_askedAt === null) return;
      quality.sample(now() - _askedAt);
      _askedAt = null;
      _schedule();
    },
    sampleOften(isOften) {
      if (isOften === _isSampledOften) return;
      _isSampledOften = isOften;
      _schedule();
    },
    /** In the middle of a run silence is suspicious sooner. */
    streaming(isStreaming) {
      if (isStreaming === _isStreaming) return;
      _isStreaming = isStreaming;
      _schedule();
    },
    /** Ask now. */
    askNow() {
      if (_isStopped) return;
      _askedAt = _lastAskedAt = _sentAt = now();
      _asked += 1;
      connection.send(PING);
      _schedule();
    },
    stop() {
      _isStopped = true;
      _cancelTimer();
    }
  };
  _schedule();
  return self;
  function _schedule() {
    _cancelTimer();
    if (_isStopped) return;
    const due = _due();
    const ms = Math.max(10, due - now());
    const wallDue = wallNow() + ms;
    _cancelTimer = platform.after(ms, () => {
      _check(Math.max(now() - due, wallNow() - wallDue) > LATE_MS);
      _schedule();
    });
  }
  function _due() {
    if (!connection.isDuplex) return _heardAt + _silenceMs;
    if (_askedAt !== null) return _askedAt + probeTimeout;
    return Math.min(
      _heardAt + (_isStreaming ? Math.min(runQuiet, heartbeatMs) : heartbeatMs),
      keepAlive === null ? Infinity : _sentAt + keepAlive,
      _heardAt > _lastAskedAt ? _lastAskedAt + (_isSampledOften ? SAMPLE_BAD_MS : SAMPLE_MS) : Infinity
    );
  }
  function _check(isLate) {
    if (!connection.isDuplex && self.isHeld) self.heard();
    if (now() < _due()) return;
    if (!connection.isDuplex) {
      if (isLate && _asked++ < MAX_ASKED) _heardAt = now() - _silenceMs + probeTimeout;
      else _die();
    } else if (_askedAt === null || isLate && _asked < MAX_ASKED && _heardAt <= _askedAt) {
      self.askNow();
    } else if (_heardAt > _askedAt) {
      _askedAt = null;
    } else {
      _die();
    }
  }
  function _die() {
    self.stop();
    connection.dead();
  }
}

// src/sse.ts
var EVENT_STREAM = "text/event-stream";
var MAX_EVENT_CHARS = 8 * 1024 * 1024;
function createEventParser(onEvent) {
  let _rest = "";
  let _skipped = "\uFEFF";
  let _name = "";
  let _data = [];
  let _size = 0;
  return {
    push(text) {
      if (!text) return;
      if (text[0] === _skipped) text = text.slice(1);
      _skipped = text.endsWith("\r") ? "\n" : "";
      const lines = (_rest + text).split(/\r\n|\r|\n/);
      _rest = lines.pop() ?? "";
      lines.forEach(_take);
      if (_rest.length + _size > MAX_EVENT_CHARS) throw new BadFrame("an event without end");
    }
  };
  function _take(line) {
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "event") _name = value;
    if (field === "data") {
      _data.push(value);
      _size += value.length;
    }
    if (line) return;
    const [name, text] = [_name, _data.join("\n")];
    [_name, _data, _size] = ["", [], 0];
    if (text) onEvent(name || "message", text);
  }
}
var openSse = (around, sink, query) => reading(
  sink,
  (signal) => read(around, sink, query, signal).catch((error) => error instanceof BadFrame ? broken(error.message) : BROKEN)
);
async function read({ platform, settings }, sink, query, signal) {
  const url = sessionUrl(sink.url, settings, "events", { ...query, sdk: 1 });
  const response = await platform.fetch?.(url, requestInit(sink.token, signal, EVENT_STREAM));
  if (response && !response.ok) return endingOf(await readReply(response));
  const reader = response?.body?.getReader();
  if (!response?.headers.get("Content-Type")?.startsWith(EVENT_STREAM) || !reader) {
    reader?.cancel().catch(none);
    return NO_GATEWAY;
  }
  sink.opened();
  const decoder2 = new TextDecoder("utf-8", { ignoreBOM: true });
  let ending = null;
  const parser = createEventParser((name, data) => {
    if (signal.aborted || ending) return;
    const value = readJson(data);
    if (name === "close") ending = closeOf(value);
    else sink.frame(value, data.length);
  });
  while (!ending) {
    await sink.room();
    const { done, value } = await reader.read();
    if (signal.aborted) return null;
    if (done) return BROKEN;
    sink.heard();
    parser.push(decoder2.decode(value, { stream: true }));
  }
  reader.cancel().catch(none);
  return ending;
}

// src/websocket.ts
var SUBPROTOCOL = "relayrouter.v1";
var ITEM = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
var OPEN = 1;
var openWebSocket = ({ platform, settings }, sink, query) => {
  const { token } = sink;
  const fitsItem = !!token && ITEM.test(token);
  const protocols = fitsItem ? [SUBPROTOCOL, `bearer.${token}`] : [SUBPROTOCOL];
  const url = sessionUrl(sink.url, settings, "ws", query).replace(/^http/, "ws");
  const socket = new platform.WebSocket(url, protocols);
  let wasOpen = false;
  const send = (text) => {
    const isOpen = socket.readyState === OPEN;
    if (isOpen) socket.send(text);
    return isOpen;
  };
  const close = (isDead) => {
    socket.onopen = socket.onmessage = socket.onclose = null;
    try {
      if (isDead && socket.terminate) socket.terminate();
      else socket.close(1e3);
    } catch {
    }
  };
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    wasOpen = true;
    if (token && !fitsItem) send(control({ kind: "auth", token }));
    sink.opened();
  };
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") return sink.heard();
    let envelope;
    try {
      envelope = readJson(data);
    } catch (error) {
      return sink.ended(broken(error.message));
    }
    const envelopes = Array.isArray(envelope) ? envelope : [envelope];
    for (const one of envelopes) sink.frame(one, data.length / envelopes.length);
  };
  socket.onerror = none;
  socket.onclose = ({ code, reason }) => {
    if (!wasOpen) return sink.ended(broken("the upgrade failed"));
    sink.ended(code === 1005 || code === 1006 ? BROKEN : { code, reason });
  };
  return { send, close };
};

// src/connection.ts
var DEFAULT_HEARTBEAT_SECONDS = 20;
var OPENERS = { websocket: openWebSocket, sse: openSse, poll: openPoll };
function createConnection(core, name, url, token) {
  const { platform, settings } = core;
  let _channel = null;
  let _settle = none;
  const self = {
    name,
    url,
    isDuplex: name === "websocket",
    /** The gateway's id for it; null before the welcome. */
    id: null,
    /** `<epoch>.<fork>` that its frames are on. */
    lineId: "",
    start: null,
    parts: [],
    isWelcome: false,
    /** Something beside the welcome was heard on it. */
    isProven: false,
    /** Somebody was there: its transport was opened, or the gateway could be asked why it was not. */
    isAnswered: false,
    isOver: false,
    welcomedAt: 0,
    /** From its welcome on. A long poll has none: each answer is a sign of life. */
    pulse: null,
    /** A getter: not for anybody who prints this. */
    get token() {
      return token;
    },
    /** Null when it is welcome; else how it ended before. */
    async open(query) {
      const cancel = platform.after(settings.timing.connectTimeout, () => self.ended(broken("no answer in time")));
      const opened = new Promise((resolve) => {
        _settle = resolve;
      });
      try {
        _channel = OPENERS[name](core, self, query);
      } catch {
        self.ended(broken("could not be opened"));
      }
      const ending = await opened;
      cancel();
      if (!ending || !isBroken(ending) || self.isAnswered || core.isOver) return ending;
      const reply = await ask(core, self, "ws", query);
      self.isAnswered = reply.isAnswered;
      const told = endingOf(reply);
      return isBroken(told) ? ending : told;
    },
    send(text) {
      const isSent = !self.isOver && _channel?.send?.(text) === true;
      if (isSent) self.pulse?.sent();
      return isSent;
    },
    /** Let go of it: whatever its transport does later is not heard. */
    close() {
      if (!self.isOver) _finish(broken("closed"));
    },
    // ---- what its channel says -------------------------------------------------------------------------------------
    opened() {
      self.isAnswered = true;
    },
    heard() {
      self.pulse?.heard();
    },
    frame(envelope, bytes) {
      if (self.isOver) return;
      self.heard();
      self.isProven ||= self.isWelcome;
      try {
        takeFrame(core, self, envelope, bytes);
      } catch (error) {
        self.ended(endingOfError(error));
      }
    },
    ended(ending) {
      if (self.isOver) return;
      _finish(ending);
      if (self.isWelcome) core.conductor.ended(self, ending);
    },
    async room() {
      if (!self.isWelcome) return;
      if (self.pulse) self.pulse.isHeld = true;
      await core.intake.room();
      if (name === "poll") {
        await core.speech.requests.unpaused();
        await core.conductor.mayPoll(self);
      }
      if (self.pulse) self.pulse.isHeld = false;
      self.heard();
    },
    // ---- what its frames say ---------------------------------------------------------------------------------------
    /** Also the repeated welcomes of a long poll. */
    welcomed(payload) {
      self.id = textOf(payload.connection) || self.id;
      if (self.isWelcome) return;
      self.isWelcome = true;
      self.welcomedAt = platform.now();
      const heartbeatMs = settings.heartbeat ?? (numberOf(payload.heartbeat) ?? DEFAULT_HEARTBEAT_SECONDS) * 1e3;
      if (name !== "poll") self.pulse = createPulse(core, self, heartbeatMs);
      _settle(null);
    },
    pong() {
      self.isProven = true;
      self.pulse?.pong();
    },
    /** Its transport may never say so. */
    dead() {
      _channel?.close(true);
      self.ended(broken("it fell silent"));
    }
  };
  return self;
  function _finish(ending) {
    self.isOver = true;
    self.pulse?.stop();
    _channel?.close(false);
    _settle(ending);
  }
}

// src/states.ts
var CHANNELS = ["websocket", "sse", "poll"];

// src/ladder.ts
var SPREAD2 = 0.25;
function createLadder({ platform, settings }) {
  const { channel, timing } = settings;
  const _isFree = channel === "auto";
  let _rung = _isFree ? 0 : CHANNELS.indexOf(channel);
  let _failures = 0;
  let _target = 0;
  const self = {
    get channel() {
      return CHANNELS[_rung] ?? "websocket";
    },
    /** What a climb tries: the best one, then those below it; null at the top, or where the application has chosen. */
    get target() {
      return _isFree && _rung > 0 && CHANNELS[_target] || null;
    },
    /** A climb failed: when to try the next rung, or all again. */
    missed() {
      _target = (_target + 1) % Math.max(1, _rung);
      return _target > 0 ? 0 : self.climbDelayMs();
    },
    /** The transport failed although somebody is there: where nobody answers at all, nothing is known about the rungs. */
    failed() {
      _failures += 1;
      if (!_isFree || _failures < timing.ladderFailures) return;
      _failures = 0;
      _rung = (_rung + 1) % CHANNELS.length;
    },
    /** The connection was heard: failures are no longer in a row. */
    proved() {
      _failures = 0;
    },
    /** By make before break: this one is live now. */
    moveTo(name) {
      _target = 0;
      _rung = CHANNELS.indexOf(name);
      _failures = 0;
    },
    /** When to climb, counted from now; Infinity when there is nowhere to. */
    climbDelayMs() {
      return self.target ? timing.climbAfter * (1 - SPREAD2 + 2 * SPREAD2 * platform.random()) : Infinity;
    }
  };
  return self;
}

// src/overlap.ts
var PARK_MS = 1e3;
function createOverlap({ platform, settings }) {
  let _predecessor = null;
  const _timer = createTimer(platform);
  const _parked = createGate();
  const _released = createGate();
  let _isHeld = false;
  const self = {
    /** The server closes it when its successor is live; if not, we do. */
    letGo(old) {
      self.close();
      _predecessor = old;
      _timer.start(settings.timing.overlap, old.close);
    },
    close() {
      _timer.stop();
      _predecessor?.close();
    },
    /** No long poll goes out until `release`: one that came later than what is about to be opened would take over from it. */
    async hold(current) {
      _isHeld = true;
      if (current?.name !== "poll") return;
      const cancel = platform.after(PARK_MS, _parked.open);
      await _parked.wait();
      cancel();
    },
    release() {
      _isHeld = false;
      _released.open();
    },
    /** Resolves when the next long poll may go out. */
    async mayPoll() {
      if (!_isHeld) return;
      _parked.open();
      await _released.wait();
    }
  };
  return self;
}

// src/conductor.ts
var ALIVE_MS = 1e3;
var MAX_RETRY = 1e3;
var SOON_MS = 500;
var OFFLINE_MS = 3e4;
function createConductor(core) {
  const { platform, settings, credentials } = core;
  const { urls, timing } = settings;
  const { now } = platform;
  const _backoff = createBackoff(core);
  const _ladder = createLadder(core);
  const _overlap = createOverlap(core);
  let _opening = null;
  let _lastId = null;
  let _turn = 0;
  let _liveName = null;
  let _notBefore = 0;
  let _replaceAt = Infinity;
  let _slotAt = 0;
  let _climbAt = Infinity;
  const _waking = createGate();
  let _isWoken = false;
  let _isBusy = false;
  let _isAttempting = false;
  let _isOffline = !platform.isOnline();
  let _isClosed = false;
  let _cause = "";
  let _url = urls[0] ?? "";
  let _shown = "";
  let _heldEnding = null;
  const self = {
    current: null,
    /** Until `close`, or an end that no attempt would change. */
    async run() {
      while (!_isClosed) {
        const due = _due();
        if (due <= now()) await _attempt();
        else await _until(due);
      }
    },
    close() {
      _isClosed = true;
      _overlap.close();
      self.current?.close();
      _opening?.close();
      self.current = null;
      self.wake();
    },
    // ---- what happens outside --------------------------------------------------------------------------------------
    network(isOnline) {
      _isOffline = !isOnline;
      if (isOnline) self.askNow();
      else self.wake();
    },
    /** The connection may be dead without knowing: ask it, or replace it when it cannot be asked. */
    askNow() {
      const { current } = self;
      if (!current) {
        if (!_isBusy) _notBefore = Math.min(_notBefore, now() + SOON_MS * platform.random());
      } else if (current.isDuplex) {
        current.pulse?.askNow();
      } else if (current.pulse && current.pulse.silentMs > ALIVE_MS) {
        _replaceAt = now();
      }
      self.wake();
    },
    /** There is room again, or something else that the next attempt depends on has changed. */
    wake() {
      _showState();
      _goOn();
    },
    // ---- what its connections say ----------------------------------------------------------------------------------
    /** The session has read its first welcome: from here on it is the connection. */
    welcomed(connection) {
      const old = self.current;
      const { name, token } = connection;
      self.current = connection;
      _opening = _heldEnding = null;
      _replaceAt = Infinity;
      _slotAt = 0;
      _isBusy = false;
      credentials.accepted(token);
      if (name !== _ladder.channel) _ladder.moveTo(name);
      if (_liveName !== name) _climbAt = now() + _ladder.climbDelayMs();
      _liveName = name;
      if (old) _overlap.letGo(old);
      _cause = "";
      _showState();
    },
    /**
     * The server named a time for the next connection: `reconnect_later`, or an error before its close. `isReplaced`: come
     * then while the old connection still delivers. A predecessor has nothing to say about it.
     */
    slot(connection, afterMs, isReplaced) {
      if (connection !== self.current) return;
      _slotAt = now() + _backoff.spread(afterMs);
      if (isReplaced) {
        _replaceAt = _slotAt;
        _turn += 1;
      }
      _goOn();
    },
    reconnect(cause) {
      const { current } = self;
      current?.close();
      if (current) self.ended(current, broken(cause));
    },
    /** Resolves when the next long poll may go out; never for one whose successor is live. */
    async mayPoll(connection) {
      await _overlap.mayPoll();
      if (connection !== self.current) await new Promise(none);
    },
    /** After its welcome. */
    ended(connection, ending) {
      if (connection !== self.current || _isClosed) return;
      _noteHealth();
      _turn += 1;
      self.current = null;
      _replaceAt = Infinity;
      _lastId = ending.code ? null : connection.id;
      core.speech.queue.lost();
      if (_isAttempting) _heldEnding = ending;
      else _handle(ending, connection);
      _goOn();
    }
  };
  return self;
  async function _attempt() {
    _isAttempting = true;
    const isClimb = !!self.current && _replaceAt > now();
    _noteHealth();
    _url = urls[_turn % urls.length] ?? "";
    _showState();
    const token = await inTime(platform, timing.connectTimeout, credentials.next).catch(none);
    if (token === void 0 && !_isClosed) core.fail("no_token", "the token could not be fetched");
    await _overlap.hold(self.current);
    let connection = null;
    let ending = broken("no token");
    if (token !== void 0 && !_isClosed) {
      const name = isClimb && _ladder.target || _ladder.channel;
      connection = _opening = createConnection(core, name, _url, token);
      ending = await connection.open(_query(name));
    }
    _isAttempting = false;
    _opening = null;
    _overlap.release();
    if (_isClosed) return;
    if (ending) _failed(connection, ending, isClimb);
    else if (_heldEnding) _failed(connection, _heldEnding, false);
  }
  function _query(name) {
    const { heartbeat, from, rhythm } = settings;
    const { cursor } = core.reception;
    const ofSocket = name === "websocket" && 1;
    return {
      client: core.clientId,
      cursor,
      from: cursor ? null : from,
      ack: ofSocket,
      batch: ofSocket,
      replaces: self.current?.id ?? _lastId,
      heartbeat: heartbeat && heartbeat / 1e3,
      retry: Math.min(_backoff.failures, MAX_RETRY) || null,
      rhythm: rhythm && 1
    };
  }
  function _failed(connection, ending, isClimb) {
    _turn += 1;
    const held = _heldEnding;
    _heldEnding = null;
    if (isClimb && self.current && !ending.error) _climbAt = now() + _ladder.missed();
    else if (held && held.code !== SUPERSEDED && errorOf(held)) _handle(held, null);
    else _handle(ending, connection);
  }
  function _handle(ending, connection) {
    const { code, reason, afterMs } = ending;
    _cause = code ? `${reason || "closed"} (${code})` : reason;
    if (code === TOO_BIG) core.speech.queue.tooBig();
    if (isBroken(ending) && connection?.isAnswered && !connection.isProven) _ladder.failed();
    const error = code === UNAUTHENTICATED ? credentials.refused(connection?.token ?? null, _cause) : errorOf(ending);
    if (error) {
      self.close();
      return core.finish(error);
    }
    const slotMs = Math.max(0, _slotAt - now());
    _slotAt = 0;
    _isBusy = afterMs !== void 0 || isBusyCode(code) || slotMs > 0;
    _notBefore = now() + (slotMs > (afterMs ?? 0) ? slotMs : _backoff.nextDelayMs(afterMs ?? 0));
  }
  function _noteHealth() {
    const { current } = self;
    if (!current?.isProven) return;
    _ladder.proved();
    if (now() - current.welcomedAt >= timing.stableAfter) _backoff.failures = 0;
  }
  function _due() {
    if (self.current) return Math.min(Math.max(_replaceAt, _notBefore), _climbAt);
    return core.intake.isFull ? Infinity : _notBefore + (_isOffline ? OFFLINE_MS : 0);
  }
  async function _until(due) {
    _showState();
    if (!_isWoken) {
      const cancel = due < Infinity ? platform.after(due - now(), _waking.open) : none;
      await _waking.wait();
      cancel();
    }
    _isWoken = false;
  }
  function _goOn() {
    _isWoken = true;
    _waking.open();
  }
  function _state() {
    if (_isOffline) return "offline";
    if (self.current) return "live";
    if (_isAttempting) return "connecting";
    return _isBusy ? "busy" : "waiting";
  }
  function _showState() {
    if (_isClosed) return;
    const state = _state();
    const channel = self.current?.name ?? (state === "connecting" ? _ladder.channel : null);
    const due = state === "live" || state === "connecting" ? Infinity : _due();
    const retryIn = due < Infinity ? Math.max(0, due - now()) : null;
    const shown = `${state} ${channel} ${due}`;
    if (shown === _shown) return;
    _shown = shown;
    core.show({ state, channel, cause: _cause, retryIn, url: _url });
  }
}
var errorOf = ({ code, reason, error }) => error ?? finalError(code, reason);

// src/credentials.ts
var MAX_REFUSALS = 2;
function createCredentials(source = null) {
  const _isRenewable = typeof source === "function";
  let _current = null;
  let _refused = null;
  let _refusals = 0;
  return {
    isRenewable: _isRenewable,
    /** The newest one that was fetched. A getter: nothing that is printed shows it. */
    get current() {
      return _current;
    },
    /** For the next attempt. Rejects when its source fails, which is trouble that passes. */
    async next() {
      const token = _isRenewable ? await source() : source;
      _current = token ? token.trim() : token;
      return _current;
    },
    /** The server refused this token: null means try again with a new one. */
    refused(token, reason) {
      _refused = token;
      _refusals += 1;
      return _isRenewable && _refusals < MAX_REFUSALS ? null : new AuthError(reason);
    },
    /** The server let this token in. The same one may have been refused for what it will be refused for again. */
    accepted(token) {
      if (token !== _refused) _refusals = 0;
    }
  };
}

// src/cursor.ts
var FORM = /^([0-9a-z]{1,32}\.[0-9a-z]{1,32})\.(0|[1-9][0-9]{0,15})$/;
function parseCursor(text) {
  const match = FORM.exec(textOf(text));
  const seq = Number(match?.[2]);
  if (!match?.[1] || !Number.isSafeInteger(seq)) throw new ProtocolError("not a cursor of a gateway");
  return { lineId: match[1], seq };
}
var formatCursor = (cursor) => `${cursor.lineId}.${cursor.seq}`;

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
function createEmitter() {
  const _listeners = /* @__PURE__ */ new Map();
  const self = {
    on(name, listener) {
      const own = (event) => listener(event);
      const known = _listeners.get(name) ?? /* @__PURE__ */ new Set();
      _listeners.set(name, known.add(own));
      return () => known.delete(own);
    },
    has(names) {
      return names.some((name) => (_listeners.get(name)?.size ?? 0) > 0);
    },
    emit(name, event) {
      for (const listener of [..._listeners.get(name) ?? []]) {
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
  return self;
}

// src/texts.ts
var encoder = new TextEncoder();
var decoder = new TextDecoder("utf-8", { ignoreBOM: true });
var MAX_TEXT_BYTES = 16 * 1024 * 1024;
var ENDED_RUNS_KEPT = 16;
var RUNS_KEPT = 1e3;
var TRACKS = { delta: "text", code_block: "text", thinking: "thinking" };
var trackOf = (kind) => TRACKS[kind] ?? null;
var utf8Length = (text) => encoder.encode(text).length;
function createRunText() {
  let _start = 0;
  let _kept = "";
  let _keptBytes = 0;
  let _encoded = null;
  const self = {
    /** Bytes of the run's text up to here, counted from its start. */
    length: 0,
    /** The log lost writes and did not say how much of this text: it goes on at the next `at`. */
    isCutByNext: false,
    /** Known from its first byte on without a hole. */
    get isWhole() {
      return _start === 0;
    },
    /** What of it is new; an overlap with what is there is sliced by bytes. */
    add(text, at) {
      if (at !== null) {
        if (self.isCutByNext) self.cut(at);
        self.isCutByNext = false;
        if (at > self.length) _beginAt(at);
      }
      if ((at === null || at === self.length) && self.length - _start === _keptBytes) {
        const bytes = utf8Length(text);
        _keep(_kept + text, _keptBytes + bytes);
        _grow(bytes);
        return { text, isRewritten: false };
      }
      return _addOver(encoder.encode(text), at ?? self.length);
    },
    /** The log goes on from here: what lies beyond is gone from it. */
    cut(length) {
      if (length < _start) _beginAt(length);
      self.length = Math.min(self.length, length);
    },
    restart() {
      if (self.length || _start) _beginAt(0);
    },
    value() {
      const bytes = self.length - _start;
      return bytes === _keptBytes ? _kept : decoder.decode(encoder.encode(_kept).subarray(0, bytes));
    },
    /** The whole text as fetched again. */
    replace(value) {
      _beginAt(0);
      self.add(value, 0);
    },
    /** What came before our part, from a text that has it. False: that one has a hole there, too. */
    prepend(whole) {
      const before = encoder.encode(whole.value()).subarray(0, _start);
      if (!whole.isWhole || before.length < _start) return false;
      _keep(decoder.decode(before) + _kept, _keptBytes + _start);
      _start = 0;
      return true;
    }
  };
  function _addOver(data, at) {
    const fresh = data.subarray(Math.max(0, self.length - at));
    const here = self.length - _start;
    _encoded ??= encoder.encode(_kept);
    const known = _encoded;
    const shown = known.subarray(here, here + fresh.length);
    const isRewritten = fresh.length > 0 && !shown.every((byte, i) => byte === fresh[i]);
    if (isRewritten || shown.length < fresh.length) {
      _keep(decoder.decode(known.subarray(0, here)) + decoder.decode(fresh), here + fresh.length);
    }
    _grow(fresh.length);
    return { text: decoder.decode(isRewritten ? fresh : fresh.subarray(shown.length)), isRewritten };
  }
  function _grow(bytes) {
    self.length += bytes;
    if (_keptBytes > MAX_TEXT_BYTES) _beginAt(self.length);
  }
  function _keep(kept, bytes) {
    _kept = kept;
    _keptBytes = bytes;
    _encoded = null;
  }
  function _beginAt(at) {
    _start = self.length = at;
    _keep("", 0);
  }
  return self;
}
var FRESH = { reason: null, hasGap: true, isCut: false, isHealed: false, isFilled: false };
var NOTHING = { text: "", isRewritten: false };
function createRunTexts() {
  const self = {
    runs: /* @__PURE__ */ new Map(),
    /**
     * Take one frame at its place; null when it is about no run's text. A snapshot is a part of a text from its beginning
     * on, and may say what else is true of its run: what is known of it is not shown again.
     */
    apply({ run, kind, payload, isControl }) {
      if (isControl && kind === "gap") _gap(payload);
      const isPart = isControl && kind === "snapshot";
      if (run === null || isControl && !isPart) return null;
      const { start, text, cut, partial } = payload;
      const at = numberOf(payload.at);
      const begins = isPart ? start !== void 0 : kind === "run_start";
      const end = isPart ? payload.end && objectOf(payload.end) : kind === "run_end" && payload;
      const isCut = isPart ? cut === true : kind === "cut";
      const track = isPart ? payload.track === "thinking" ? "thinking" : "text" : trackOf(kind);
      if (!begins && !end && !isCut && !track) return null;
      const known = _of(run);
      if (begins) {
        Object.assign(known, isPart ? { reason: null, hasGap: false } : { ...FRESH, hasGap: false });
        if (!isPart) known.text.restart();
        if (!isPart) known.thinking.restart();
      }
      if (isPart && at === 0 && !isCut && track) known[track].cut(0);
      const added = track ? known[track].add(textOf(text), at) : NOTHING;
      if (isPart && partial === true) known.hasGap = true;
      if (isCut) known.isCut = true;
      if (end) _end(run, known, end);
      return { run, track, added, begins, end: end || null };
    }
  };
  function _of(name) {
    let known = self.runs.get(name);
    if (!known) {
      known = { text: createRunText(), thinking: createRunText(), ...FRESH };
      self.runs.set(name, known);
      _forgetOld();
    }
    return known;
  }
  function _end(name, known, { reason }) {
    known.reason = textOf(reason) || "complete";
    self.runs.delete(name);
    self.runs.set(name, known);
    _forgetOld();
  }
  function _gap(payload) {
    const reason = payload.reason;
    if (reason === "evicted") {
      for (const run of self.runs.values()) run.hasGap = true;
      return;
    }
    const isKnown = reason === "epoch_changed";
    const lengths = isKnown ? objectOf(payload.runs) : {};
    const thinking = isKnown && payload.thinking !== void 0 ? objectOf(payload.thinking) : null;
    for (const [name, run] of self.runs) {
      const length = lengths[name];
      run.text.cut(numberOf(length) ?? 0);
      if (thinking) run.thinking.cut(numberOf(thinking[name]) ?? 0);
      else run.thinking.isCutByNext = length !== void 0;
      if (length === void 0) {
        run.thinking.cut(0);
        run.reason = null;
        run.hasGap = true;
      }
    }
  }
  function _forgetOld() {
    const ended = [...self.runs].filter(([, { reason }]) => reason !== null);
    for (const [name] of ended.slice(0, -ENDED_RUNS_KEPT)) self.runs.delete(name);
    for (const name of self.runs.keys()) if (self.runs.size > RUNS_KEPT) self.runs.delete(name);
  }
  return self;
}

// src/delivery.ts
var DONE = { done: true, value: void 0 };
function createDelivery(core) {
  const { emitter, texts } = core;
  const _openAsks = /* @__PURE__ */ new Map();
  const _silenced = /* @__PURE__ */ new Set();
  let _isLooping = false;
  let _isDraining = false;
  const _news = createGate();
  let _isOver = false;
  let _error = null;
  const self = {
    /** After the last message applied; null before the first. */
    cursor: null,
    /** We began at a stored position: beginnings of runs are fetched. */
    isFilling: false,
    get asks() {
      return [..._openAsks.values()];
    },
    get runs() {
      return [...texts.runs].map(([run, { reason }]) => ({ run, state: reason === null ? "open" : "ended", reason }));
    },
    /** A loop takes what there is, else listeners do, else it waits. */
    drain() {
      if (_isLooping) return _news.open();
      if (_isDraining) return;
      _isDraining = true;
      while (!_isLooping && emitter.has(CONTENT_EVENTS) && _next()) ;
      _isDraining = false;
    },
    loop() {
      if (_isLooping) throw new Error("read by another loop");
      _isLooping = true;
      let isStopped = false;
      const stop = () => {
        if (!isStopped) {
          isStopped = true;
          _isLooping = false;
          _news.open();
          self.drain();
        }
        return DONE;
      };
      const take = async () => {
        while (!isStopped) {
          const taken2 = _next();
          if (taken2?.message) return { done: false, value: taken2.message };
          if (taken2) continue;
          if (_isOver) {
            stop();
            if (_error) throw _error;
            break;
          }
          await _news.wait();
        }
        return DONE;
      };
      let last = Promise.resolve();
      return {
        // One after the other, also where several are asked for at once.
        next: () => {
          const taken2 = last.then(take);
          last = taken2.catch(none);
          return taken2;
        },
        return: async () => stop()
      };
    },
    /** Nothing comes any more; what came can still be taken. */
    end(error) {
      _isOver = true;
      _error = error;
      core.intake.close();
      self.drain();
    },
    silence(run) {
      _silenced.add(run);
    },
    /** An open ask, announced ahead of its place. */
    opened(payload) {
      const ask2 = textOf(payload.ask);
      if (!ask2 || _openAsks.has(ask2)) return;
      const run = typeof payload.run === "string" ? payload.run : null;
      const known = { ask: ask2, message: textOf(payload.message), run, payload };
      _openAsks.set(ask2, known);
      emitter.emit("ask", known);
    }
  };
  return self;
  function _next() {
    const item2 = core.intake.take();
    if (!item2) return null;
    const isSilenced = _isSilenced(item2.frame);
    const change = isSilenced ? null : texts.apply(item2.frame);
    if (item2.cursor) {
      self.cursor = formatCursor(item2.cursor);
      core.acks.note(item2.cursor, item2.bytes);
      core.keeper.moved(self.cursor);
    }
    const message = isSilenced ? null : _apply(item2.frame, change);
    if (message) emitter.emit("message", message);
    return { message };
  }
  function _isSilenced({ kind, run }) {
    if (run === null || !_silenced.has(run)) return false;
    if (kind === "run_end") _silenced.delete(run);
    return trackOf(kind) !== null || kind === "tool";
  }
  function _apply(frame, change) {
    const { isControl, kind, run, timestamp, payload } = frame;
    if (change) _tell(change, isControl ? {} : payload);
    if (isControl && kind === "gap") {
      const { first, last, reason } = payload;
      emitter.emit("gap", { first: numberOf(first) ?? 0, last: numberOf(last) ?? 0, reason: textOf(reason) });
    } else if (kind === "ask") {
      self.opened(payload);
    } else if (kind === "ask_resolved") {
      const ask2 = textOf(payload.ask);
      _openAsks.delete(ask2);
      emitter.emit("ask_resolved", { ask: ask2, status: textOf(payload.status), value: payload.value, payload });
    }
    if (isControl && kind === "snapshot" && run === null) return null;
    const text = change?.track ? change.added.text : textOf(payload.text);
    const [seq, firstSeq] = isControl ? [null, null] : [frame.seq, frame.firstSeq];
    return { kind, seq, firstSeq, timestamp, run, text, payload, late: payload.late === true };
  }
  function _tell({ run, track, added, begins, end }, payload) {
    if (begins) emitter.emit("run", { run, state: "open", reason: null, payload });
    const known = texts.runs.get(run);
    if (track && (added.text || added.isRewritten)) {
      emitter.emit(track, { run, added: added.text, isRewritten: added.isRewritten });
      if (self.isFilling && known?.[track].isWhole === false) void core.recovery.fill(run, known);
    }
    if (end) {
      emitter.emit("run", { run, state: "ended", reason: known?.reason ?? null, payload: end });
      core.recovery.verify(run, end).catch(none);
    }
  }
}

// src/feed.ts
var ROOM_BYTES = 256 * 1024;
var FULL_BYTES = 4 * 1024 * 1024;
var JOIN_MS = 500;
var PLAIN = ["kind", "run", "text", "at"];
var SENTENCE_END = /[.!?…。！？\n]["'”’)\]]*\s*$/u;
function createFeed(core) {
  const { platform, settings } = core;
  const _items = [];
  const _joining = createTimer(platform);
  let _bytes = 0;
  const _room = createGate();
  const self = {
    get isFull() {
      return _bytes > FULL_BYTES;
    },
    put(frame, cursor, bytes) {
      _items.push({ frame, cursor, bytes, arrivedAt: platform.now() });
      _bytes += bytes;
      core.delivery.drain();
      _tellAge();
    },
    /** The next one; null when there is none, or its sentence is not complete yet. */
    take() {
      const [first] = _items;
      const joined2 = first && _isWhole() && isText(first.frame) ? _joinable(first) : 1;
      if (!first || !joined2) return null;
      const items = _items.splice(0, joined2);
      const item2 = joined2 === 1 ? first : join(items);
      const wasFull = self.isFull;
      _bytes -= item2.bytes;
      if (wasFull && !self.isFull) core.conductor.wake();
      if (_bytes < ROOM_BYTES) _room.open();
      _tellAge();
      return item2;
    },
    async room() {
      if (_bytes >= ROOM_BYTES) await _room.wait();
    },
    close() {
      _joining.stop();
      _room.open();
    }
  };
  return self;
  function _tellAge() {
    core.quality.behind(_items[0] ? platform.now() - _items[0].arrivedAt : 0, true);
  }
  function _isWhole() {
    const { segments } = settings;
    return segments === "whole" || segments === "auto" && core.quality.isDegraded;
  }
  function _joinable({ frame: { kind, run }, arrivedAt }) {
    let count = 0;
    for (const { frame } of _items) {
      if (frame.kind !== kind || frame.run !== run || !isText(frame)) return count;
      count += 1;
      if (SENTENCE_END.test(textOf(frame.payload.text))) return count;
    }
    const leftMs = arrivedAt + JOIN_MS - platform.now();
    if (leftMs <= 0) return count;
    _joining.start(leftMs, core.delivery.drain);
    return 0;
  }
}
var isText = ({ isControl, kind, payload }) => !isControl && trackOf(kind) !== null && Object.keys(payload).every((name) => PLAIN.includes(name));
function join(items) {
  const [first, last] = [items[0], items[items.length - 1]];
  const text = items.map(({ frame }) => textOf(frame.payload.text)).join("");
  const payload = { ...last.frame.payload, ...first.frame.payload, text };
  const bytes = items.reduce((sum, item2) => sum + item2.bytes, 0);
  return { ...last, frame: { ...last.frame, firstSeq: first.frame.firstSeq, payload }, bytes };
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
function createKeeper(core, store) {
  const { platform, settings } = core;
  const { session, user } = settings;
  const _timer = createTimer(platform);
  let _place = { client: "", user, cursor: null, inputs: [] };
  let _saving = null;
  let _isDirty = false;
  const self = {
    /** What was kept for this user; null when there is nothing, or it was another user's. */
    async load() {
      const saved = await _try("read", () => store.load(session));
      return saved && (user === null || saved.user === user) ? saved : null;
    },
    get isShared() {
      return store.isShared;
    },
    /** From here on in memory only. */
    forsake() {
      store = new MemoryStore();
    },
    /** What is kept from here on. */
    begin(client, cursor, inputs) {
      _place = { client, user, cursor, inputs };
    },
    moved(cursor) {
      _place = { ..._place, cursor };
      _isDirty = true;
      _timer.start(SAVE_AFTER_MS, self.writeOut);
    },
    /** Resolves when they are kept (or cannot be): before they are sent. */
    keepInputs(inputs) {
      _place = { ..._place, inputs };
      _isDirty = true;
      return self.writeOut();
    },
    /** Resolves when everything up to now is kept. */
    async writeOut() {
      _timer.stop();
      while (_saving) await _saving;
      if (!_isDirty) return;
      _isDirty = false;
      _saving = _try("written", () => store.save(session, _place)).then(() => {
        _saving = null;
      });
      await _saving;
    }
  };
  return self;
  async function _try(what, act) {
    try {
      return await inTime(platform, STORE_MS, act, self.forsake);
    } catch {
      core.fail("store", `the store could not be ${what}`);
      return void 0;
    }
  }
}

// src/gateway_order.ts
function ownOrder([first = "", ...others], random) {
  const order = [first];
  for (const url of others) order.splice(1 + random() * order.length, 0, url);
  return order;
}

// src/options.ts
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
function readOptions(options, random) {
  const urls = ownOrder([options.url].flat(), random).map(checkBase);
  if (!options.session) throw bad("session is missing");
  if (options.cursor) parseCursor(options.cursor);
  const { timing, token: _, ...given } = options;
  const settings = { ...DEFAULTS, ...withoutHoles(given), urls, timing: { ...DEFAULT_TIMING, ...timing } };
  const { heartbeat, channel } = settings;
  if (heartbeat !== null && !(heartbeat >= 5e3 && heartbeat <= 25e3)) throw bad("heartbeat: 5000 to 25000");
  if (channel !== "auto" && !CHANNELS.includes(channel)) throw bad("channel: auto, websocket, sse or poll");
  return settings;
}
var withoutHoles = (options) => Object.fromEntries(Object.entries(options).filter(([, value]) => value != null));
function checkBase(text) {
  try {
    const { href } = new URL(text.replace(/^ws/, "http"));
    if (/^https?:[^?#]+$/.test(href)) return href.replace(/\/+$/, "");
  } catch {
  }
  throw bad("url: like https://relay.example.com");
}
var bad = (message) => new RelayError("bad_options", message);

// src/page.ts
var INTERVAL_MS = 5e3;
var JUMP = 2;
function watchPage({ platform, conductor, keeper }) {
  let cancelTimer;
  const stopListening = platform.onPage((event) => {
    if (event === "visible" || event === "restored") conductor.askNow();
    else if (event === "online" || event === "offline") conductor.network(event === "online");
    else void keeper.writeOut();
  });
  const watchClock = () => {
    const [began, wallBegan] = [platform.now(), platform.wallNow()];
    cancelTimer = platform.after(INTERVAL_MS, () => {
      const elapsedMs = Math.max(platform.now() - began, platform.wallNow() - wallBegan);
      watchClock();
      if (elapsedMs - INTERVAL_MS > JUMP * INTERVAL_MS) conductor.askNow();
    });
  };
  watchClock();
  return () => {
    stopListening();
    cancelTimer();
  };
}

// src/quality.ts
var SMOOTHING = 0.3;
var BAD_RTT_MS = 800;
var FAIR_RTT_MS = 300;
var RECOVERY_MS = 1e4;
var BEHIND_MS = 2e3;
var LEAST_CHANGE = 0.1;
function createQuality(core) {
  const { platform, emitter } = core;
  let _rtt = null;
  let _feedMs = 0;
  let _pageMs = 0;
  let _goodSince = null;
  let _told = null;
  const self = {
    isDegraded: false,
    sample(rttMs) {
      _rtt = _rtt === null ? rttMs : _rtt + SMOOTHING * (rttMs - _rtt);
      _judge();
    },
    /** How old the oldest message is that the application has not taken (`isFeed`); or else that its page has not shown. */
    behind(ms, isFeed = false) {
      if (isFeed) _feedMs = ms;
      else _pageMs = ms;
      _judge();
    },
    now() {
      const rttMs = _rtt ?? 0;
      const [slowness, lateness] = [rttMs / BAD_RTT_MS, Math.max(_feedMs, _pageMs) / BEHIND_MS];
      const isBad = slowness > 1 || lateness > 1;
      const level = isBad ? "poor" : rttMs > FAIR_RTT_MS ? "fair" : "good";
      return { score: Math.round(100 / (1 + slowness ** 2 + lateness ** 2)) / 100, level, rtt: _rtt };
    }
  };
  function _judge() {
    const { conductor } = core;
    const now = self.now();
    const told = _told;
    const isBad = now.level === "poor";
    _goodSince = isBad ? null : _goodSince ?? platform.now();
    self.isDegraded = isBad || self.isDegraded && platform.now() - (_goodSince ?? 0) < RECOVERY_MS;
    conductor.current?.pulse?.sampleOften(self.isDegraded);
    if (told?.level === now.level && Math.abs(told.score - now.score) < LEAST_CHANGE) return;
    _told = now;
    emitter.emit("quality", now);
  }
  return self;
}

// src/reception.ts
var HELD_FRAMES = 256;
function createReception(core) {
  const { platform, settings } = core;
  let _current = null;
  let _held = [];
  const _timer = createTimer(platform);
  let _isFetching = false;
  let _askedAgainAt = "";
  const self = {
    /** After the last message received; null before the first welcome. */
    place: null,
    /** As text. */
    get cursor() {
      return self.place && formatCursor(self.place);
    },
    /** From here on it is the one that names positions. A long poll welcomes again and again. */
    welcome(source, frame) {
      const start = parseCursor(frame.payload.cursor);
      source.lineId = start.lineId;
      source.start = start;
      _current = source;
      if (!self.place && frame.payload.resumed !== "gap") self.place = start;
    },
    take(source, sized) {
      const { isControl, kind, payload } = sized.frame;
      if (!isControl) return _message(source, sized);
      const cursor = kind === "snapshot" && payload.cursor === void 0 ? null : parseCursor(payload.cursor);
      if (cursor) source.lineId = cursor.lineId;
      if (source !== _current) return;
      if (kind === "snapshot") source.parts.push(sized);
      else if (cursor && kind === "gap") _gap(source, sized, cursor);
      else if (cursor) _forked(cursor, numberOf(payload.base) ?? cursor.seq);
      if (!cursor || kind !== "snapshot") return;
      if (_follow(cursor)) _flush(source, cursor);
      source.parts = [];
      _forgetHeld();
    },
    /** A page of history for a hole. */
    takeHistory(source, sized) {
      const current = _current;
      _current = source;
      self.take(source, sized);
      _current = current;
    },
    stop: _timer.stop
  };
  function _message(source, sized) {
    _flush(source, null);
    if (source === _current && source.lineId !== self.place?.lineId && source.start) _moveTo(source.start);
    const offer = _offer(sized, source.lineId);
    if (offer === "hole") _hold(sized);
    if (offer === "next") _releaseHeld();
  }
  function _offer({ frame, bytes }, lineId) {
    const { place } = self;
    const { seq, firstSeq } = frame;
    if (seq === null || firstSeq === null || place === null) throw new BadFrame("a message too early");
    if (lineId !== place.lineId || seq <= place.seq) return "past";
    if (firstSeq > place.seq + 1) return "hole";
    self.place = { lineId, seq };
    core.intake.put({ ...frame, firstSeq: place.seq + 1 }, self.place, bytes);
    return "next";
  }
  function _follow(cursor) {
    const { place } = self;
    if (place?.lineId === cursor.lineId && cursor.seq <= place.seq) return false;
    self.place = cursor;
    return true;
  }
  function _flush(source, cursor) {
    const { parts } = source;
    source.parts = [];
    parts.forEach(({ frame, bytes }, i) => {
      core.intake.put(frame, i === parts.length - 1 ? cursor : null, bytes);
    });
  }
  function _gap(source, { frame, bytes }, cursor) {
    _flush(source, null);
    if (frame.payload.reason === "ahead") self.place = cursor;
    else if (!_follow(cursor)) return;
    core.intake.put(frame, cursor, bytes);
    _forgetHeld();
  }
  function _forked({ lineId, seq }, base) {
    const { place } = self;
    if (place?.lineId !== lineId) _moveTo({ lineId, seq: place && place.seq <= base ? Math.max(place.seq, seq) : seq });
  }
  function _moveTo(cursor) {
    self.place = cursor;
    _forgetHeld();
  }
  function _hold(sized) {
    if (_held.length >= HELD_FRAMES) return void _fill();
    _held.push(sized);
    _timer.start(settings.timing.reorder, _fill);
  }
  function _releaseHeld() {
    const waiting = _held.sort((a, b) => (a.frame.firstSeq ?? 0) - (b.frame.firstSeq ?? 0));
    _held = waiting.filter((sized) => _offer(sized, self.place?.lineId ?? "") === "hole");
    if (_held.length === 0) self.stop();
  }
  function _forgetHeld() {
    _held = [];
    self.stop();
  }
  async function _fill() {
    const { conductor, recovery } = core;
    const since = self.cursor;
    if (_isFetching || !_held.length || !since) return;
    _isFetching = true;
    await recovery.missing(since);
    _isFetching = false;
    _releaseHeld();
    const frame = _held[0]?.frame;
    if (!frame || !self.place) return;
    if (self.cursor !== since) return void _fill();
    if (_askedAgainAt !== since) {
      _askedAgainAt = since;
      _forgetHeld();
      return conductor.reconnect("a message is missing");
    }
    const { lineId, seq } = self.place;
    const last = (frame.firstSeq ?? 1) - 1;
    const payload = { kind: "gap", first: seq + 1, last, reason: "missing" };
    self.place = { lineId, seq: last };
    core.intake.put({ ...frame, isControl: true, kind: "gap", run: null, payload }, self.place, 0);
    _releaseHeld();
  }
  return self;
}

// src/recovery.ts
var ATTEMPTS = 4;
var PAUSE_MS = 500;
var MAX_PAGES = 20;
var PAGE_MESSAGES = 1e3;
function createRecovery(core) {
  const { platform, emitter, texts } = core;
  const self = {
    /** What follows `since`, handed to the reception. */
    async missing(since) {
      const { reception } = core;
      const source = { lineId: parseCursor(since).lineId, start: null, parts: [] };
      await _read(since, (envelope) => {
        reception.takeHistory(source, { frame: readFrame(envelope), bytes: JSON.stringify(envelope).length });
        return true;
      });
    },
    /** Compares a run's text with the digest of its `run_end`; a text that is wrong is fetched again, once. */
    async verify(run, told) {
      const tell = (ok, healed) => emitter.emit("digest", { run, ok, healed });
      const known = texts.runs.get(run);
      if (!known || known.isCut || typeof told.sha256 !== "string") return;
      if (await _isEqual(known.text, told)) return tell(true, false);
      if (known.isHealed) return;
      known.isHealed = true;
      const fetched = await _fetch(run);
      if (fetched && await _isEqual(fetched.text, told)) {
        known.text.replace(fetched.text.value());
        emitter.emit("text", { run, added: "", isRewritten: true });
        tell(true, true);
      } else if (!known.hasGap) {
        tell(false, false);
      }
    },
    /** A run that we joined in its middle although our place is before: the page was loaded again. */
    async fill(run, known) {
      if (known.isFilled || known.isCut) return;
      known.isFilled = true;
      const fetched = await _fetch(run);
      if (!fetched || texts.runs.get(run) !== known) return;
      for (const track of ["text", "thinking"]) {
        if (!known[track].isWhole && known[track].prepend(fetched[track])) {
          emitter.emit(track, { run, added: "", isRewritten: true });
        }
      }
    }
  };
  async function _fetch(run) {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const texts2 = createRunTexts();
      const isRead = await _read(null, (envelope) => {
        const frame = readFrame(envelope);
        return frame.run !== run || !texts2.apply(frame)?.end;
      });
      if (isRead) return texts2.runs.get(run);
      if (attempt < ATTEMPTS) await sleep(platform, attempt * PAUSE_MS);
    }
    return void 0;
  }
  async function _read(since, onEnvelope) {
    const { clientId: client, conductor, credentials, shown } = core;
    for (let page = 0; page < MAX_PAGES && !core.isOver; page++) {
      const asker = conductor.current ?? { url: shown.url, token: credentials.current };
      const { body, refusal } = await ask(core, asker, "messages", { client, limit: PAGE_MESSAGES, since });
      const { frames, more, cursor } = body;
      if (refusal || !Array.isArray(frames)) return false;
      try {
        if (!frames.every(onEnvelope)) return true;
      } catch {
        return false;
      }
      if (more !== true || typeof cursor !== "string" || cursor === since) return true;
      since = cursor;
    }
    return false;
  }
  async function _isEqual(text, told) {
    const data = encoder.encode(text.value());
    if (!text.isWhole || (numberOf(told.bytes) ?? data.length) !== data.length) return false;
    return await platform.sha256(data) === told.sha256;
  }
  return self;
}

// src/input_queue.ts
var WINDOW = 16;
var DEFAULT_LIMIT_BYTES = 64 * 1024;
function createInputQueue(core, send) {
  const { platform, settings, emitter } = core;
  let _entries = [];
  let _limitBytes = DEFAULT_LIMIT_BYTES;
  let _accepted = null;
  let _isRestored = false;
  let _isOnline = false;
  let _isPumping = false;
  let _isAsked = false;
  let _isPaused = false;
  const _pause = createTimer(platform);
  let _closed = null;
  return {
    get length() {
      return _entries.length;
    },
    /** From an earlier life of this page: sent again under the same numbers. Before it, nothing is kept or sent. */
    restore(inputs) {
      _entries = [...inputs.map(entryOf), ..._entries];
      _isRestored = true;
      void _pump();
    },
    /** Settles when the gateway has it for good, or never will. Throws when it cannot wait here. */
    add(payload) {
      const entry = entryOf({ seq: null, payload });
      const { bytes } = entry;
      if (_closed) throw _closed;
      if (bytes > _limitBytes) throw new TooLargeError(`${bytes} bytes, at most ${_limitBytes}`);
      const waiting = _entries.reduce((sum, other) => sum + other.bytes, bytes);
      if (_entries.length >= settings.queueItems || waiting > settings.queueBytes)
        throw new QueueFullError("too many wait");
      return new Promise((resolve, reject) => {
        _entries.push(Object.assign(entry, { resolve, reject }));
        _tell(entry, "queued");
        void _pump();
      });
    },
    /** A connection is live. Whatever is not settled is sent again. */
    welcome(inputSeq, limitBytes) {
      if (inputSeq !== null) _accepted = Math.max(inputSeq, 0);
      _limitBytes = limitBytes ?? _limitBytes;
      _isOnline = true;
      _sendAgain(_entries);
    },
    lost() {
      _isOnline = false;
    },
    /** The gateway's answer about an input. */
    settle(payload, isAccepted) {
      const details = objectOf(payload.details);
      const seq = numberOf(payload.seq) ?? numberOf(details.seq) ?? 0;
      const expected = numberOf(payload.expected) ?? numberOf(details.expected);
      const entry = _find(seq);
      if (!entry) return;
      if (isAccepted) {
        _accepted = Math.max(_accepted ?? 0, seq);
        _remove(entry, "accepted");
        entry.resolve(payload);
        void _pump();
      } else if (payload.code === "expected") {
        const next = _find(expected ?? 1);
        if (!next) _renumber(expected ?? 1);
        else if (!_isPaused) _sendAgain(_entries.slice(_entries.indexOf(next)), RETRY_MS / 2);
      } else if (passes(payload)) {
        _sendAgain(_entries.slice(_entries.indexOf(entry)), numberOf(payload.after_ms) ?? RETRY_MS);
      } else {
        _fail(entry, refusalOf(payload), payload.code === "conflict" ? expected ?? seq + 1 : seq);
      }
    },
    /** The connection was closed for a message that was too big: the biggest of those that were sent. */
    tooBig() {
      const [entry] = _entries.filter(({ isSent }) => isSent).sort((a, b) => b.bytes - a.bytes);
      if (entry) _fail(entry, new TooLargeError("closed for its size"), entry.seq ?? 1);
    },
    /** What waits stays in the store, and is sent when the session is opened again from there. */
    close(error) {
      _closed = error;
      _pause.stop();
      for (const entry of _entries) entry.reject(error);
    }
  };
  function _find(seq) {
    return _entries.find((entry) => entry.seq === seq);
  }
  async function _pump() {
    _isAsked = true;
    if (_isPumping || !_isRestored) return;
    _isPumping = true;
    while (_isAsked && !_closed) {
      _isAsked = false;
      _number();
      await core.keeper.keepInputs(_entries.map(({ seq, payload }) => ({ seq, payload })));
      _sendDue();
    }
    _isPumping = false;
  }
  function _number() {
    if (_accepted === null) return;
    let last = _accepted;
    for (const entry of _entries) {
      entry.seq ??= last + 1;
      last = Math.max(last, entry.seq);
    }
  }
  function _sendDue() {
    if (!_isOnline || _closed || _isPaused) return;
    for (const entry of _entries.slice(0, core.conductor.current?.isDuplex ? WINDOW : 1)) {
      const { seq, payload, isSent } = entry;
      if (isSent || seq === null) continue;
      if (!send({ seq, payload })) return;
      entry.isSent = true;
      _tell(entry, "sent");
    }
  }
  function _sendAgain(entries, afterMs = 0) {
    for (const entry of entries) entry.isSent = false;
    _pause.stop();
    _isPaused = afterMs > 0;
    if (_isPaused) _pause.start(afterMs, () => _sendAgain([]));
    else void _pump();
  }
  function _renumber(from) {
    _accepted = from - 1;
    for (const entry of _entries) Object.assign(entry, { seq: null, isSent: false });
    void _pump();
  }
  function _fail(entry, error, from) {
    _remove(entry, "failed");
    entry.reject(error);
    _renumber(from);
  }
  function _remove(entry, status) {
    _entries = _entries.filter((other) => other !== entry);
    _tell(entry, status);
  }
  function _tell({ seq, payload }, status) {
    emitter.emit("input", { seq, status, payload });
  }
}
function entryOf({ seq, payload }) {
  return { seq, payload, bytes: utf8Length(JSON.stringify(payload)), isSent: false, resolve: none, reject: none };
}

// src/own_words.ts
var ESCAPES = /\\(?:(ud[89a-f][0-9a-f]{2})|.)/g;
function asJson(value) {
  try {
    const text = JSON.stringify(value).replace(ESCAPES, (all, half) => half ? "\uFFFD" : all);
    const copy = JSON.parse(text);
    if (isObject(copy)) return copy;
  } catch {
  }
  throw new RefusedError("bad_request", 'not a JSON object, like {text: "Hello"}');
}

// src/requests.ts
var MAX_PENDING = 64;
var ID_BYTES = 8;
function createRequests({ platform }, send) {
  let _isPaused = false;
  const _pending = /* @__PURE__ */ new Map();
  let _closed = null;
  const _gate = createGate();
  return {
    ask(kind, fields) {
      if (kind === "pause") _isPaused = true;
      if (kind === "resume") _goOn();
      if (_closed) throw _closed;
      if (_pending.size >= MAX_PENDING) throw new QueueFullError("too many wait");
      const id = platform.randomHex(ID_BYTES);
      return new Promise((resolve, reject) => {
        _pending.set(id, { payload: { kind, ...fields, id }, resolve, reject, pause: createTimer(platform) });
        _say(id);
      });
    },
    /** Until nothing is paused; for what is paused by not asking for more. */
    async unpaused() {
      if (_isPaused && !_closed) await _gate.wait();
    },
    /** A connection is live: everything that is open is said again. */
    welcome() {
      const kinds2 = [..._pending.values()].map(({ payload }) => payload.kind);
      if (_isPaused && !kinds2.includes("pause") && !kinds2.includes("resume")) send({ kind: "pause" });
      for (const id of _pending.keys()) _say(id);
    },
    /** An `accepted` or `error` of the gateway. One that answers nothing of ours changes nothing. */
    settle(id, payload, isAccepted) {
      const request = _pending.get(id);
      if (!request) return;
      if (!isAccepted && passes(payload)) {
        return request.pause.start(numberOf(payload.after_ms) ?? RETRY_MS, () => _say(id));
      }
      _pending.delete(id);
      if (isAccepted) request.resolve(payload);
      else request.reject(refusalOf(payload));
    },
    close(error) {
      _closed = error;
      _goOn();
      for (const request of _pending.values()) {
        request.pause.stop();
        request.reject(error);
      }
      _pending.clear();
    }
  };
  function _goOn() {
    _isPaused = false;
    _gate.open();
  }
  function _say(id) {
    const request = _pending.get(id);
    if (request) send(request.payload);
  }
}

// src/speech.ts
var RETRYABLE = [401, 408, 425, 429];
function createSpeech(core) {
  let _posts = Promise.resolve();
  const _stop = new AbortController();
  const queue = createInputQueue(core, (input) => _send("input", input));
  const requests = createRequests(core, (request) => _send("control", request));
  const self = {
    queue,
    requests,
    input: (payload) => _say(payload, queue.add),
    control: (kind, fields) => _say(fields, (copy) => requests.ask(kind, copy)),
    /** A connection is live: whatever is not settled is said again. */
    welcome(payload) {
      queue.welcome(numberOf(payload.input_seq), numberOf(objectOf(payload.limits).message_bytes));
      requests.welcome();
    },
    /** An `accepted` or `error` that says what it answers. */
    answered(payload, isAccepted) {
      if (payload.what === "input") queue.settle(payload, isAccepted);
      else requests.settle(textOf(payload.id), payload, isAccepted);
    },
    /** What waits, and what comes later, is rejected with it. */
    close(error) {
      _stop.abort();
      requests.close(error);
      queue.close(error);
    }
  };
  return self;
  function _say(given, say) {
    const said = (async () => say(asJson(given)))();
    said.catch(none);
    return said;
  }
  function _send(what, said) {
    const { kind, id, seq } = said;
    const live = core.conductor.current;
    if (!live) return false;
    if (live.isDuplex) return live.send(what === "input" ? JSON.stringify({ type: "text", ...said }) : control(said));
    const answer = { what: kind ?? what, id, seq };
    if (live.name === "poll" && (kind === "pause" || kind === "resume")) self.answered(answer, true);
    else _posts = _posts.then(() => _post(live, what, said, answer));
    return true;
  }
  async function _post(live, what, said, answer) {
    const { signal } = _stop;
    if (signal.aborted) return;
    const body = { client: core.clientId, ...said };
    const { refusal, status, body: told, afterMs } = await ask(core, live, what, {}, { body, signal });
    if (signal.aborted) return;
    const isRetryable = refusal ? RETRYABLE.includes(status) || status >= 500 : !status;
    if (isRetryable) self.answered({ ...answer, retryable: true, after_ms: afterMs ?? void 0 }, false);
    else self.answered({ ...told, ...objectOf(refusal?.details), ...refusal, ...answer }, !refusal);
  }
}

// src/tab_place.ts
async function takePlace(core, asked) {
  const { platform, keeper, settings, reception, delivery, speech } = core;
  const saved = await keeper.load();
  const take = (client2) => platform.lock(`relayrouter:${settings.session}:${client2}`);
  let client = asked.client ?? saved?.client ?? freshClient(platform);
  let release = await take(client);
  if (!release) {
    client = freshClient(platform);
    release = await take(client);
    if (keeper.isShared) keeper.forsake();
  }
  const cursor = asked.cursor ?? saved?.cursor ?? null;
  const inputs = saved?.client === client ? saved.inputs : [];
  keeper.begin(client, cursor, inputs);
  core.clientId = client;
  reception.place = savedCursor(cursor);
  delivery.isFilling = !!reception.place;
  speech.queue.restore(inputs);
  return release ?? none;
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

// src/core.ts
function createCore(options) {
  const { platform: base = defaultPlatform(), store = new MemoryStore() } = options;
  const settings = readOptions(options, base.random);
  const { WebSocket = base.WebSocket, fetch: fetch2 = base.fetch } = options;
  const platform = Object.assign(Object.create(base), { WebSocket, fetch: fetch2 });
  const emitter = createEmitter();
  let _releaseLock = none;
  const core = {
    platform,
    settings,
    emitter,
    texts: createRunTexts(),
    credentials: createCredentials(options.token),
    clientId: "",
    head: null,
    shown: { state: "connecting", channel: null, cause: "", retryIn: null, url: "" },
    error: null,
    isOver: false,
    fail(code, message) {
      emitter.emit("error", new RelayError(code, message, true));
    },
    show(event) {
      core.shown = event;
      emitter.emit("state", event);
    },
    finish(error) {
      if (core.isOver) return;
      core.isOver = true;
      core.error = error;
      core.conductor.close();
      leavePage();
      core.acks.stop();
      core.reception.stop();
      core.speech.close(error ?? new ClosedError());
      _releaseLock();
      core.show({ ...core.shown, state: "closed", channel: null, cause: error?.message ?? "closed", retryIn: null });
      core.delivery.end(error);
      void core.keeper.writeOut();
    }
  };
  core.quality = createQuality(core);
  core.acks = createAcks(core);
  core.intake = createFeed(core);
  core.delivery = createDelivery(core);
  core.reception = createReception(core);
  core.recovery = createRecovery(core);
  core.speech = createSpeech(core);
  core.keeper = createKeeper(core, store);
  core.conductor = createConductor(core);
  const leavePage = watchPage(core);
  core.started = _start();
  return core;
  async function _start() {
    const release = await takePlace(core, options);
    if (core.isOver) return release();
    _releaseLock = release;
    core.conductor.run().catch((error) => core.finish(new RelayError("internal", String(error))));
  }
}

// src/session.ts
var Session = class {
  /** Use `connect`. Throws RelayError `bad_options`. */
  constructor(options) {
    this._core = createCore(options);
  }
  // ---- what is known -----------------------------------------------------------------------------------------------
  get state() {
    return this._core.shown.state;
  }
  get channel() {
    return this._core.shown.channel;
  }
  /** Why it is closed for good; null while it is not, and after `close`. */
  get error() {
    return this._core.error;
  }
  /** After the last message that the application took; null before the first. */
  get cursor() {
    return this._core.delivery.cursor ?? this._core.reception.cursor;
  }
  /** Our client id; empty until the store has been read. */
  get client() {
    return this._core.clientId;
  }
  /** The position of the log's last message, as the newest welcome told it; null before the first. */
  get head() {
    return this._core.head;
  }
  get quality() {
    return this._core.quality.now();
  }
  /** Inputs that wait to be accepted. */
  get queued() {
    return this._core.speech.queue.length;
  }
  /** Those that are open, and the last ones that ended. */
  get runs() {
    return this._core.delivery.runs;
  }
  /** Open ones. */
  get asks() {
    return this._core.delivery.asks;
  }
  /** The run's text as far as the application took its messages. */
  text(run) {
    return this._core.texts.runs.get(run)?.text.value() ?? "";
  }
  thinking(run) {
    return this._core.texts.runs.get(run)?.thinking.value() ?? "";
  }
  // ---- to read -----------------------------------------------------------------------------------------------------
  /** Returns how to stop listening. */
  on(name, listener) {
    const off = this._core.emitter.on(name, listener);
    if (CONTENT_EVENTS.includes(name)) queueMicrotask(() => this._core.delivery.drain());
    return off;
  }
  /** One loop at a time; a later one goes on where it was left. Throws `session.error` when it ends by one. */
  [Symbol.asyncIterator]() {
    return this._core.delivery.loop();
  }
  // ---- to speak ----------------------------------------------------------------------------------------------------
  /** To the agent. Resolves when it is durable, exactly once whatever happens to connections. Rejects with RelayError. */
  send(payload) {
    return this._core.speech.input(payload);
  }
  /** End the run: when this resolves, no more of its text comes. `seen`: what was on screen; default: what was taken. */
  interrupt(run, seen) {
    const { delivery, texts, speech } = this._core;
    const own = delivery.cursor && { ...parseCursor(delivery.cursor), at: texts.runs.get(run)?.text.length ?? 0 };
    const told = seen ?? own;
    const accepted = speech.control("interrupt", told ? { run, seen: { seq: told.seq, at: told.at } } : { run });
    accepted.then(() => delivery.silence(run), none);
    return accepted;
  }
  /** No text until `resume`; also on later connections. Nothing is lost. */
  pause() {
    return this._core.speech.control("pause", {});
  }
  resume() {
    return this._core.speech.control("resume", {});
  }
  /** End the run for everybody. */
  cancel(run, reason) {
    return this._core.speech.control("cancel", { run, reason });
  }
  /** `winner` says whether this was the first valid answer. */
  answer(ask2, value) {
    return this._core.speech.control("answer", { ask: ask2, value });
  }
  /** The connection may be dead without knowing: ask it now. Page events do this by themselves. */
  probe() {
    this._core.conductor.askNow();
  }
  /** A renderer says how far it is behind, in ms; 0 when it has caught up. */
  reportBehind(ms) {
    this._core.quality.behind(ms);
  }
  /** Leaves nothing behind. Resolves when the place is kept. */
  async close() {
    this._core.acks.writeOut();
    this._core.finish(null);
    await this._core.started;
    await this._core.keeper.writeOut();
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
