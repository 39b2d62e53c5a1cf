/** SHA-256 in plain JavaScript: pages that are not a secure context have no `crypto.subtle`. */

import { hex } from "./hex.js";

const ROUNDS = 64;

/** The first 32 bits of the fractional part. */
const fraction = (x: number): number => ((x % 1) * 2 ** 32) | 0;

const turn = (x: number, n: number): number => (x >>> n) | (x << (32 - n));

/** Lower-case hex. Of at most 512 MB. */
export function sha256(data: Uint8Array): string {
  const primes: number[] = [];
  for (let n = 2; primes.length < ROUNDS; n++) if (primes.every((prime) => n % prime)) primes.push(n);
  const rounds = primes.map((prime) => fraction(prime ** (1 / 3)));
  let state = primes.slice(0, 8).map((prime) => fraction(prime ** (1 / 2)));
  const padded = new Uint8Array(((data.length + 72) >> 6) << 6);
  const view = new DataView(padded.buffer);
  padded.set(data);
  padded[data.length] = 0x80;
  view.setUint32(padded.length - 4, data.length << 3);
  for (let block = 0; block < padded.length; block += 64) {
    let [a, b, c, d, e, f, g, h] = state as [number, number, number, number, number, number, number, number];
    const w: number[] = [];
    for (let i = 0; i < ROUNDS; i++) {
      const [old, recent] = [w[i - 15]!, w[i - 2]!];
      w[i] =
        i < 16
          ? view.getInt32(block + 4 * i)
          : (w[i - 16]! +
              w[i - 7]! +
              (turn(old, 7) ^ turn(old, 18) ^ (old >>> 3)) +
              (turn(recent, 17) ^ turn(recent, 19) ^ (recent >>> 10))) |
            0;
      h += (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + rounds[i]! + w[i]!;
      d += h;
      h += (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      [a, b, c, d, e, f, g, h] = [h | 0, a, b, c, d | 0, e, f, g];
    }
    state = [a, b, c, d, e, f, g, h].map((word, i) => (word + state[i]!) | 0);
  }
  state.forEach((word, i) => {
    view.setInt32(4 * i, word);
  });
  return hex(padded.subarray(0, 32));
}
