// src/media/frame.ts
var HEADER_BYTES = 17;
var KEY = 1;
var DROPPABLE = 2;
var END = 4;
var TYPES = [void 0, "audio", "video"];
function readFrame(data) {
  if (data.byteLength < HEADER_BYTES) return null;
  const head = new DataView(data);
  const type = TYPES[head.getUint8(1)];
  const flags = head.getUint8(2);
  const sourceEnd = HEADER_BYTES + head.getUint8(4);
  const end = sourceEnd + head.getUint8(3);
  if (head.getUint8(0) !== 1 || type === void 0 || data.byteLength < end) return null;
  const text = (from, to) => new TextDecoder().decode(new Uint8Array(data, from, to - from));
  return {
    type,
    source: text(HEADER_BYTES, sourceEnd),
    stream: text(sourceEnd, end),
    sequence: head.getUint32(5),
    timestamp: Number(head.getBigUint64(9)),
    isKey: (flags & KEY) !== 0,
    isDroppable: (flags & DROPPABLE) !== 0,
    isEnd: (flags & END) !== 0,
    payload: new Uint8Array(data, end)
  };
}
function writeFrame(frame) {
  const stream = new TextEncoder().encode(frame.stream);
  if (stream.length < 1 || stream.length > 128) throw new RangeError("stream: 1 to 128 bytes");
  const data = new Uint8Array(HEADER_BYTES + stream.length + frame.payload.length);
  const head = new DataView(data.buffer);
  head.setUint8(0, 1);
  head.setUint8(1, frame.type === "audio" ? 1 : 2);
  head.setUint8(2, (frame.isKey ? KEY : 0) | (frame.isDroppable ? DROPPABLE : 0) | (frame.isEnd ? END : 0));
  head.setUint8(3, stream.length);
  head.setUint32(5, frame.sequence);
  head.setBigUint64(9, BigInt(Math.trunc(frame.timestamp ?? Date.now())));
  data.set(stream, HEADER_BYTES);
  data.set(frame.payload, HEADER_BYTES + stream.length);
  return data;
}

// src/media/index.ts
var REMEMBERED = 256;
var MAX_UNSENT_BYTES = 64 * 1024;
var OPEN = 1;
var CONTROL = '{"type":"control"';
function withMedia(options, caps) {
  const listeners = { media: /* @__PURE__ */ new Set(), media_dropped: /* @__PURE__ */ new Set() };
  const seen = /* @__PURE__ */ new Set();
  let latest = null;
  function emit(name, event) {
    for (const listener of [...listeners[name]]) {
      try {
        listener(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
  function take(data) {
    if (data instanceof ArrayBuffer) {
      const frame = readFrame(data);
      if (frame === null) return;
      const name = JSON.stringify([frame.source, frame.stream, frame.sequence, frame.timestamp]);
      if (seen.has(name)) return;
      seen.add(name);
      for (const oldest of seen) {
        if (seen.size <= REMEMBERED) break;
        seen.delete(oldest);
      }
      emit("media", frame);
    } else if (typeof data === "string" && data.startsWith(CONTROL) && data.includes('"media_dropped"')) {
      const dropped = readDropped(data);
      if (dropped !== null) emit("media_dropped", dropped);
    }
  }
  const base = options.WebSocket ?? options.platform?.WebSocket ?? scope.WebSocket ?? null;
  const asking = base && class extends base {
    constructor(url, protocols) {
      const asked = new URL(url);
      asked.searchParams.set("caps", caps.join(","));
      super(asked.href, protocols);
      const socket = this;
      socket.addEventListener?.("message", ({ data }) => {
        latest = socket;
        take(data);
      });
    }
  };
  return {
    options: asking ? { ...options, WebSocket: asking } : options,
    on(name, listener) {
      listeners[name].add(listener);
      return () => void listeners[name].delete(listener);
    },
    send(frame) {
      if (latest?.readyState !== OPEN || (latest.bufferedAmount ?? 0) > MAX_UNSENT_BYTES) return false;
      latest.send(writeFrame(frame));
      return true;
    }
  };
}
var scope = globalThis;
function readDropped(data) {
  const payload = JSON.parse(data).payload;
  if (typeof payload !== "object" || payload === null) return null;
  const { kind, audio, video, audio_only } = payload;
  if (kind !== "media_dropped") return null;
  return { audio: Number(audio) || 0, video: Number(video) || 0, isAudioOnly: audio_only === true };
}
export {
  withMedia
};
