/** What comes from a gateway, read once: frames, and the messages that applications get of them. */

import { ProtocolError } from "./errors.js";

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [name: string]: JsonValue | undefined;
}

/** One frame as it came. `seq` is null on control frames; a merged frame covers firstSeq..seq. */
export interface Frame {
  readonly isControl: boolean;
  readonly kind: string;
  readonly seq: number | null;
  readonly firstSeq: number | null;
  readonly timestamp: number;
  readonly run: string | null;
  readonly payload: JsonObject;
}

/** What the loop yields: each text frame once and in order; `gap` and `snapshot` at their place. */
export interface Message {
  readonly kind: string;
  /** Position in the session's log; null for `gap` and `snapshot`. */
  readonly seq: number | null;
  /** A merged message covers firstSeq..seq. */
  readonly firstSeq: number | null;
  /** Unix time in ms, given by the server. */
  readonly timestamp: number;
  readonly run: string | null;
  /** The part of its text that was new. */
  readonly text: string;
  readonly payload: JsonObject;
  /** It came after its place in the producer's order was given up. */
  readonly late: boolean;
}

/** What came is no envelope of ours: the connection is not with a gateway. */
export class BadFrame extends Error {}

const NO_ENVELOPE = "no envelope";

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** Throws BadFrame, and ProtocolError for an integer that a double cannot hold. Unknown kinds and fields pass. */
export function readFrame(envelope: unknown): Frame {
  const { type, seq: told, first_seq, timestamp, payload: content } = objectOf(envelope);
  const payload = objectOf(content);
  const { kind, run, at } = payload;
  const isControl = type === "control";
  const seq = integer(told, "seq");
  integer(at, "at");
  if (typeof type !== "string" || typeof kind !== "string" || (!isControl && seq === null))
    throw new BadFrame(NO_ENVELOPE);
  return {
    isControl,
    kind,
    seq,
    firstSeq: integer(first_seq, "first_seq") ?? seq,
    timestamp: integer(timestamp, "timestamp") ?? 0,
    run: typeof run === "string" ? run : null,
    payload,
  };
}

/** A control message of ours, as it is sent. */
export const control = (payload: JsonObject): string => JSON.stringify({ type: "control", payload });

/** Throws BadFrame. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new BadFrame(NO_ENVELOPE);
  }
}

function integer(value: unknown, name: string): number | null {
  if (typeof value !== "number") return null;
  if (!Number.isSafeInteger(value)) throw new ProtocolError(`${name} is above 2^53`);
  return value;
}
