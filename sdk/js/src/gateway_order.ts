/**
 * The gateways as one session tries them: the first given (empty when none is), then the others by chance, so that those
 * who lose the same gateway do not all come to the same other one.
 */
export function ownOrder([first = "", ...others]: readonly string[], random: () => number): readonly string[] {
  const order = [first];
  for (const url of others) order.splice(1 + random() * order.length, 0, url);
  return order;
}
