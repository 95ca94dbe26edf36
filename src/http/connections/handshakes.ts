import type { Server, Socket } from 'node:net';
import { systemClock } from '../../time/clock.ts';
import { createFairTurns } from '../../time/fair-turns.ts';
import { createConnectionAddress } from '../client-address.ts';

/** The type of a TLS record that contains a handshake message. */
const HANDSHAKE = 22;
const RECORD_HEADER_BYTES = 5;
/** The maximum size of a record, including its header. */
const MOST_RECORD_BYTES = 16_384 + RECORD_HEADER_BYTES;

/**
 * Returns whether the record with the first message has arrived. Bytes that no TLS client sends are complete as well,
 * so that Node rejects them.
 */
function isComplete(bytes: Buffer): boolean {
  if (bytes[0] !== HANDSHAKE) return true;
  if (bytes.length < RECORD_HEADER_BYTES) return false;
  return bytes.length >= Math.min(RECORD_HEADER_BYTES + bytes.readUInt16BE(3), MOST_RECORD_BYTES);
}

/** Calls `act` when the first message of a client has arrived. Closes the connection if it does not arrive in time. */
function whenArrived(socket: Socket, timeoutMs: number, act: () => void): void {
  let bytes: Buffer = Buffer.alloc(0);
  const cancel = systemClock.setTimer(() => socket.destroy(), timeoutMs);
  const read = (chunk: Buffer) => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    if (!isComplete(bytes)) return;
    cancel();
    socket.off('data', read).off('end', leave).off('close', cancel);
    socket.pause();
    socket.unshift(bytes);
    act();
  };
  const leave = () => socket.destroy();
  socket.on('data', read).on('end', leave).on('close', cancel);
}

/**
 * Starts a single TLS handshake in each iteration of the event loop, so that the requests of open connections are
 * processed between two handshakes. Addresses take turns regardless of the number of their handshakes.
 *
 * The signature of a handshake takes longer than most requests. Node performs it as soon as the first message of a
 * client has arrived, so thousands of clients that send it at the same moment would block the process for seconds.
 *
 * @param options.timeoutMs the maximum time until the first message has arrived
 */
export function takeHandshakeTurns(
  server: Server,
  { timeoutMs, nextIteration }: { readonly timeoutMs: number; readonly nextIteration: (run: () => void) => void },
): void {
  const starts = server.listeners('connection');
  const addressOf = createConnectionAddress([]);
  const turns = createFairTurns<string | undefined>({
    places: 1,
    // Each handshake leaves its place when it starts.
    holdMs: 0,
    mostWaiting: Infinity,
    mostWaitMs: Infinity,
    clock: systemClock,
    nextIteration,
  });

  async function start(socket: Socket): Promise<void> {
    const leave = await turns.take(addressOf(socket), { isPatient: true });
    if (typeof leave === 'function') leave();
    if (!socket.destroyed) for (const listener of starts) listener.call(server, socket);
  }

  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    if (socket.destroyed) return;
    // Node only handles the errors of a connection from its handshake on.
    socket.on('error', () => socket.destroy());
    whenArrived(socket, timeoutMs, () => void start(socket));
  });
}
