import type { Server } from 'node:net';

/**
 * The maximum time in milliseconds for accepting connections before a function is run. About as long as a call takes,
 * so that connections and calls each get half of the time at worst.
 */
const MOST_MS = 2;

/**
 * Returns a function like `setImmediate`, which first accepts the connections that have arrived.
 *
 * Node accepts one connection in each iteration of the event loop. If each iteration also starts a call, a client that
 * connects has to wait for as many calls as there are connections before its own.
 */
export function createArrivals(
  server: Pick<Server, 'on'>,
  {
    mostMs = MOST_MS,
    nowMs = () => performance.now(),
  }: { readonly mostMs?: number; readonly nowMs?: () => number } = {},
): (run: () => void) => void {
  let [accepted, lastSeen] = [0, 0];
  server.on('connection', () => void accepted++);
  return run => {
    const untilMs = nowMs() + mostMs;
    let seen = lastSeen;
    const look = () => {
      const isLast = accepted === seen || nowMs() >= untilMs;
      lastSeen = seen = accepted;
      if (isLast) run();
      else setImmediate(look);
    };
    setImmediate(look);
  };
}
