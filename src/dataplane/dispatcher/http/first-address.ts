import type { LookupAddress } from 'node:dns';
import { type BlockList, isIP, type LookupFunction, connect as netConnect, type Socket } from 'node:net';

/**
 * The time for which an address is tried alone (RFC 8305, 5). After that, the connection to this address is kept
 * because the address may only be far away.
 */
const ALONE_MS = 250;
/** The maximum number of addresses to try for a connection. */
const MOST_ADDRESSES = 8;

/**
 * The buffer that all connections without TLS read to. Node would otherwise allocate 64 KiB for each read. Listeners of
 * `data` are called before anything else is read, and copy the bytes that they keep.
 */
const read = Buffer.allocUnsafeSlow(64 * 1024);

interface Route {
  readonly hostname: string;
  readonly port: number;
  /** True if data is read into the shared buffer. TLS reads from the connection by itself. */
  readonly sharesBuffer: boolean;
  readonly lookup: LookupFunction;
  /** Checked against the address the socket connects to. */
  readonly refused: BlockList;
}

function open({ port, sharesBuffer, refused }: Route, address: string): Socket {
  const socket = netConnect({
    host: address,
    port,
    blockList: refused,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 60_000,
    ...(sharesBuffer ? { onread: { buffer: read, callback: emitRead } } : {}),
  });
  /** Emits bytes in the same way as without a shared buffer. */
  function emitRead(length: number, buffer: Uint8Array): boolean {
    return socket.emit('data', (buffer as Buffer).subarray(0, length)) || true;
  }
  return socket;
}

/** Alternates between address families, starting with the preferred one. */
function alternate(addresses: readonly LookupAddress[]): LookupAddress[] {
  const ranks = new Map<number, number>();
  const ranked = addresses.map(each => {
    const rank = ranks.get(each.family) ?? 0;
    ranks.set(each.family, rank + 1);
    return { each, rank };
  });
  return ranked.toSorted((a, b) => a.rank - b.rank).map(({ each }) => each);
}

/**
 * Opens a TCP connection to the first address of a host that accepts it, and then calls `done`, exactly once. The next
 * address is tried when an address has failed, or has not responded for a moment. Node would give up the address then,
 * so a host that is far away would never be reached if its last address fails. If all of them fail, the error is that
 * of the preferred address.
 *
 * @returns a function that cancels the connection. `done` is then not called anymore
 */
export function connectToFirst(route: Route, done: (error: unknown, socket: Socket | null) => void): () => void {
  const pending = new Set<Socket>();
  let addresses: readonly string[] = [];
  let tried = 0;
  let firstError: unknown;
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;

  function end(): void {
    isOver = true;
    clearTimeout(timer);
    for (const socket of pending) socket.destroy();
  }

  function tryNext(): void {
    clearTimeout(timer);
    const isPreferred = tried === 0;
    const socket = open(route, addresses[tried++] as string);
    pending.add(socket);
    if (tried < addresses.length) timer = setTimeout(tryNext, ALONE_MS);
    socket.once('connect', () => {
      if (isOver) return;
      pending.delete(socket);
      end();
      done(null, socket);
    });
    // Don't remove this listener: an error of a socket without one would end the process.
    socket.on('error', error => {
      pending.delete(socket);
      if (isPreferred) firstError = error;
      if (isOver) return;
      if (tried < addresses.length) return tryNext();
      if (pending.size > 0) return;
      end();
      done(firstError, null);
    });
  }

  function begin(found: readonly string[]): void {
    addresses = found.slice(0, MOST_ADDRESSES);
    tryNext();
  }

  if (isIP(route.hostname) !== 0) {
    begin([route.hostname]);
  } else {
    route.lookup(route.hostname, { all: true }, (error, found) => {
      if (isOver) return;
      if (error === null) return begin(alternate(found as LookupAddress[]).map(({ address }) => address));
      end();
      done(error, null);
    });
  }
  return end;
}
