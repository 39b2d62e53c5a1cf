/** What an application says, made fit for the wire. */

import { RefusedError } from "./errors.js";
import { isObject, type JsonObject } from "./messages.js";

/** Escapes of JSON; the first group is half of a character without the other half. */
const ESCAPES = /\\(?:(ud[89a-f][0-9a-f]{2})|.)/g;

/**
 * As JSON has it: a copy, so that what the application changes later changes no repeat of it. Halves of characters (a text
 * that was cut in an emoji) become U+FFFD, as everywhere in browsers. Throws RefusedError for what is no JSON object: a
 * gateway could not even say which message it refused.
 */
export function asJson(value: JsonObject): JsonObject {
  try {
    const text = JSON.stringify(value).replace(ESCAPES, (all, half) => (half ? "\ufffd" : all));
    const copy: unknown = JSON.parse(text);
    if (isObject(copy)) return copy;
  } catch {} // a bigint, a circle, nothing at all
  throw new RefusedError("bad_request", 'not a JSON object, like {text: "Hello"}');
}
