/** One audio or video frame: a binary message with a small header, as docs/media.md says. */

export interface MediaFrame {
  readonly type: "audio" | "video";
  /** The client that sent it; empty: a publisher. A stream is source and stream together. */
  readonly source: string;
  readonly stream: string;
  /** The sender's own count; a hole: frames were dropped on the way. */
  readonly sequence: number;
  /** Ms of the sender's clock. */
  readonly timestamp: number;
  readonly isKey: boolean;
  readonly isDroppable: boolean;
  readonly isEnd: boolean;
  readonly payload: Uint8Array<ArrayBuffer>;
}

/** What a client sends; the gateway says who it is. */
export type OutgoingFrame = Pick<MediaFrame, "type" | "stream" | "sequence" | "payload"> &
  Partial<Pick<MediaFrame, "timestamp" | "isKey" | "isDroppable" | "isEnd">>;

const HEADER_BYTES = 17;
const KEY = 1;
const DROPPABLE = 2;
const END = 4;
const TYPES = [undefined, "audio", "video"] as const;

/** Null for what is no frame of this version: a newer gateway may send what we do not know. */
export function readFrame(data: ArrayBuffer): MediaFrame | null {
  if (data.byteLength < HEADER_BYTES) return null;
  const head = new DataView(data);
  const type = TYPES[head.getUint8(1)];
  const flags = head.getUint8(2);
  const sourceEnd = HEADER_BYTES + head.getUint8(4);
  const end = sourceEnd + head.getUint8(3);
  if (head.getUint8(0) !== 1 || type === undefined || data.byteLength < end) return null;
  const text = (from: number, to: number) => new TextDecoder().decode(new Uint8Array(data, from, to - from));
  return {
    type,
    source: text(HEADER_BYTES, sourceEnd),
    stream: text(sourceEnd, end),
    sequence: head.getUint32(5),
    timestamp: Number(head.getBigUint64(9)),
    isKey: (flags & KEY) !== 0,
    isDroppable: (flags & DROPPABLE) !== 0,
    isEnd: (flags & END) !== 0,
    payload: new Uint8Array(data, end),
  };
}

/** Throws RangeError for a stream whose id has not 1 to 128 bytes. */
export function writeFrame(frame: OutgoingFrame): Uint8Array<ArrayBuffer> {
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
