// src/media/frame.ts
var TYPES = [void 0, "audio", "video"];
function readFrame(data) {
  if (data.byteLength < 17) return null;
  let head = new DataView(data), type = TYPES[head.getUint8(1)], flags = head.getUint8(2), sourceEnd = 17 + head.getUint8(4), end = sourceEnd + head.getUint8(3);
  if (head.getUint8(0) !== 1 || type === void 0 || data.byteLength < end) return null;
  let text = (from, to) => new TextDecoder().decode(new Uint8Array(data, from, to - from));
  return {
    type,
    source: text(17, sourceEnd),
    stream: text(sourceEnd, end),
    sequence: head.getUint32(5),
    timestamp: Number(head.getBigUint64(9)),
    isKey: (flags & 1) !== 0,
    isDroppable: (flags & 2) !== 0,
    isEnd: (flags & 4) !== 0,
    payload: new Uint8Array(data, end)
  };
}
function writeFrame(frame) {
  let stream = new TextEncoder().encode(frame.stream);
  if (stream.length < 1 || stream.length > 128) throw new RangeError("stream: 1 to 128 bytes");
  let data = new Uint8Array(17 + stream.length + frame.payload.length), head = new DataView(data.buffer);
  return head.setUint8(0, 1), head.setUint8(1, frame.type === "audio" ? 1 : 2), head.setUint8(2, (frame.isKey ? 1 : 0) | (frame.isDroppable ? 2 : 0) | (frame.isEnd ? 4 : 0)), head.setUint8(3, stream.length), head.setUint32(5, frame.sequence), head.setBigUint64(9, BigInt(Math.trunc(frame.timestamp ?? Date.now()))), data.set(stream, 17), data.set(frame.payload, 17 + stream.length), data;
}

// src/media/index.ts
var REMEMBERED = 256, MAX_UNSENT_BYTES = 64 * 1024, OPEN = 1, CONTROL = '{"type":"control"';
function withMedia(options, caps) {
  let listeners = { media: /* @__PURE__ */ new Set(), media_dropped: /* @__PURE__ */ new Set() }, seen = /* @__PURE__ */ new Set(), latest = null;
  function emit(name, event) {
    for (let listener of [...listeners[name]])
      try {
        listener(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
  }
  function take(data) {
    if (data instanceof ArrayBuffer) {
      let frame = readFrame(data);
      if (frame === null) return;
      let name = JSON.stringify([frame.source, frame.stream, frame.sequence, frame.timestamp]);
      if (seen.has(name)) return;
      seen.add(name);
      for (let oldest of seen) {
        if (seen.size <= REMEMBERED) break;
        seen.delete(oldest);
      }
      emit("media", frame);
    } else if (typeof data == "string" && data.startsWith(CONTROL) && data.includes('"media_dropped"')) {
      let dropped = readDropped(data);
      dropped !== null && emit("media_dropped", dropped);
    }
  }
  let base = options.WebSocket ?? options.platform?.WebSocket ?? scope.WebSocket ?? null, asking = base && class extends base {
    constructor(url, protocols) {
      let asked = new URL(url);
      asked.searchParams.set("caps", caps.join(",")), super(asked.href, protocols);
      let socket = this;
      socket.addEventListener?.("message", ({ data }) => {
        latest = socket, take(data);
      });
    }
  };
  return {
    options: asking ? { ...options, WebSocket: asking } : options,
    on(name, listener) {
      return listeners[name].add(listener), () => {
        listeners[name].delete(listener);
      };
    },
    send(frame) {
      return latest?.readyState !== OPEN || (latest.bufferedAmount ?? 0) > MAX_UNSENT_BYTES ? !1 : (latest.send(writeFrame(frame)), !0);
    }
  };
}
var scope = globalThis;
function readDropped(data) {
  let payload = JSON.parse(data).payload;
  if (typeof payload != "object" || payload === null) return null;
  let { kind, audio, video, audio_only } = payload;
  return kind !== "media_dropped" ? null : { audio: Number(audio) || 0, video: Number(video) || 0, isAudioOnly: audio_only === !0 };
}
export {
  withMedia
};
