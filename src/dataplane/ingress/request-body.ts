import type { IncomingMessage } from 'node:http';
import { append, trimmed } from '../../http/collected-bytes.ts';
import { createShares } from '../../time/shares.ts';

/** The bytes that a request holds. */
export interface Holding {
  /** Takes bytes from the budget. If this would exceed a share of it, nothing is taken and this returns false. */
  readonly take: (bytes: number) => boolean;
  /** Gives back everything that was taken. */
  readonly release: () => void;
}

/**
 * ByteBudget limits the number of bytes that can be held at the same time across several requests. Includes bodies that
 * are still arriving.
 */
export interface ByteBudget {
  /** Begins to hold bytes for an event of the stream. */
  readonly open: (stream: { readonly tenant: string; readonly queue: string }) => Holding;
  readonly held: () => number;
}

/**
 * Creates the budget. A workspace can hold at most as much as it leaves free. The same applies to the streams of a
 * Redis master, so if a master does not respond, its streams leave half of the budget to those of other masters. Of
 * this half, a workspace can also hold at most as much as it leaves free.
 *
 * @param masterOf returns the name of a stream's master, or an empty string if there is only one
 */
export function createByteBudget(
  bytes: number,
  masterOf: (tenant: string, queue: string) => string = () => '',
): ByteBudget {
  const workspaces = createShares(bytes);
  const masters = createShares(bytes);
  const onMasters = createShares(bytes);
  return {
    open({ tenant, queue }) {
      const master = masterOf(tenant, queue);
      const onMaster = `${master} ${tenant}`;
      let held = 0;
      const fits = (wanted: number) =>
        wanted <= workspaces.freeFor(tenant) &&
        (master === '' || wanted <= (masters.freeFor(master) - onMasters.heldBy(onMaster)) / 2);
      function add(count: number): void {
        held += count;
        workspaces.add(tenant, count);
        if (master === '') return;
        masters.add(master, count);
        onMasters.add(onMaster, count);
      }
      return {
        take(wanted) {
          if (!fits(wanted)) return false;
          add(wanted);
          return true;
        },
        release: () => add(-held),
      };
    },
    held: () => bytes - workspaces.free(),
  };
}

/**
 * Either the body, or the reason why it could not be read. The body can be too large, the budget can be used up, or the
 * sender can be disconnected.
 */
export type BodyResult = Buffer | 'too_large' | 'overloaded' | 'aborted';

const EMPTY = Buffer.alloc(0);

/**
 * Reads the request body. The content type does not matter. The bytes of the body are taken from the budget. The caller
 * needs to release them. If its size is announced, all of them are taken before it arrives. If they were taken later,
 * bodies that arrive at the same time could all be refused in the middle. The rest of a refused body is read and
 * discarded, so the sender sees our response rather than a connection reset.
 */
export function readRequestBody(
  request: IncomingMessage,
  options: { bodyBytes: number; holding: Holding },
  done: (result: BodyResult) => void,
): void {
  const { bodyBytes, holding } = options;
  if (request.destroyed) {
    done('aborted');
    return;
  }
  const announced = request.headers['content-length'];
  if (announced === undefined ? request.headers['transfer-encoding'] === undefined : announced === '0') {
    done(EMPTY);
    return;
  }
  const taken = announced === undefined ? 0 : Number(announced);
  const refusal = taken > bodyBytes ? 'too_large' : holding.take(taken) ? undefined : 'overloaded';
  if (refusal !== undefined) {
    request.resume();
    done(refusal);
    return;
  }
  const most = announced === undefined ? bodyBytes : taken;
  let body: Buffer = EMPTY;
  let held = 0;

  function onData(chunk: Buffer): void {
    if (held + chunk.length > bodyBytes) return refuse('too_large');
    if (announced === undefined && !holding.take(chunk.length)) return refuse('overloaded');
    body = append(body, held, chunk, most);
    held += chunk.length;
  }
  function onEnd(): void {
    stop();
    done(trimmed(body, held));
  }
  function onGone(): void {
    refuse('aborted');
  }
  function refuse(reason: 'too_large' | 'overloaded' | 'aborted'): void {
    stop();
    // No other listener is left, so ignore late connection errors.
    request.on('error', () => {});
    request.resume();
    done(reason);
  }
  function stop(): void {
    request.removeListener('data', onData);
    request.removeListener('end', onEnd);
    request.removeListener('error', onGone);
    request.removeListener('close', onGone);
  }
  request.on('data', onData);
  request.on('end', onEnd);
  request.on('error', onGone);
  // Follows after an error or the end. By itself, it means that the sender has disconnected.
  request.on('close', onGone);
}
