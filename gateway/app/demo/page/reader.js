// The smallest honest reader: keeps its cursor, acknowledges, comes back with full jitter, takes no message twice and
// none after a hole, checks every digest.
const ACK_EVERY_MS = 250;
const SILENT_MS = 8000;

export async function readSession({ url, onState, onText }) {
  const client = `browser-${Math.random().toString(36).slice(2, 10)}`;
  const place = { cursor: null, seq: 0, gateway: null, connection: null, rtt_ms: null, state: "connecting" };
  const texts = new Map();
  for (let attempt = 0; ; attempt++) {
    if (await readOnce(url, client, place, texts, onState, onText)) attempt = 0;
    place.state = "reconnecting";
    onState({ ...place });
    const delay = place.after_ms ?? Math.random() * Math.min(4000, 250 * 2 ** Math.min(attempt, 5));
    place.after_ms = null;
    await new Promise((resolve) => setTimeout(resolve, delay));
  }
}

function readOnce(url, client, place, texts, onState, onText) {
  return new Promise((resolve) => {
    const query = new URLSearchParams({ client, ack: "1" });
    if (place.cursor) query.set("cursor", place.cursor);
    if (place.connection) query.set("replaces", place.connection); // its gateway may not know yet that it is dead
    const socket = new WebSocket(`${url}?${query}`, "relayrouter.v1");
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
        if (kind === "welcome") {
          wasLive = true;
          const { gateway, connection, cursor } = frame.payload;
          Object.assign(place, { gateway, connection, cursor, state: "live" });
          acked = place.seq = Number(place.cursor.split(".")[2]);
        } else if (kind === "pong" && asked !== null) {
          place.rtt_ms = heard - asked;
        } else if (kind === "gap" || kind === "forked") {
          place.cursor = frame.payload.cursor;
          acked = place.seq = Number(place.cursor.split(".")[2]);
        } else if (kind === "reconnect_later") {
          place.after_ms = frame.payload.after_ms;
        }
      } else {
        if (frame.seq <= place.seq) return; // had that one
        if ((frame.first_seq ?? frame.seq) > place.seq + 1) return finish(); // a hole: ask again from the cursor
        apply(frame, texts, onText);
        place.seq = frame.seq;
        place.cursor = place.cursor.replace(/[0-9]+$/, frame.seq);
      }
      onState({ ...place });
    };
  });
}

async function apply({ payload }, texts, onText) {
  const { kind, run, text } = payload;
  if (kind === "run_start") texts.set(run, "");
  if (kind === "delta" && texts.has(run)) texts.set(run, texts.get(run) + text);
  if (kind === "delta" || kind === "thinking") onText({ run, kind, text });
  if (kind === "run_end") {
    const equal = await digestEquals(texts.get(run), payload.sha256);
    texts.delete(run);
    onText({ run, kind, end: { reason: payload.reason, bytes: payload.bytes, equal } });
  }
}

async function digestEquals(text, sha256) {
  if (text === undefined || !sha256 || !crypto.subtle) return null; // joined in the middle, or not a secure context
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("") === sha256;
}
