import type { IncomingMessage } from 'node:http';

/** ByteBudget limits the number of bytes that can be held at the same time. It is shared by several requests. */
export interface ByteBudget {
  /** Takes the bytes from the budget. Returns false and takes nothing if the budget would be exceeded. */
  readonly take: (bytes: number) => boolean;
  readonly give: (bytes: number) => void;
  readonly held: () => number;
}

export function createByteBudget(bytes: number): ByteBudget {
  let held = 0;
  return {
    take(wanted) {
      if (held + wanted > bytes) return false;
      held += wanted;
      return true;
    },
    give(returned) {
      held -= returned;
    },
    held: () => held,
  };
}

/**
 * The result is the body, or the reason why it could not be read. The body may be too large, the budget may be used up,
 * or the sender may have disconnected.
 */
export type BodyResult = Buffer | 'too_large' | 'overloaded' | 'aborted';

const EMPTY = Buffer.alloc(0);

/**
 * Reads the body of a request without considering the content type. The bytes are taken from `budget` as they arrive.
 * If `done` is called with a Buffer, the caller must give its bytes back, and all other bytes are given back here. If
 * the body is refused, the rest is read and discarded. This ensures that the sender receives the answer instead of a
 * connection reset.
 */
export function readRequestBody(
  request: IncomingMessage,
  options: { bodyBytes: number; budget: ByteBudget },
  done: (result: BodyResult) => void,
): void {
  const { bodyBytes, budget } = options;
  const announced = request.headers['content-length'];
  if (announced === undefined ? request.headers['transfer-encoding'] === undefined : announced === '0') {
    done(EMPTY);
    return;
  }
  if (announced !== undefined && Number(announced) > bodyBytes) {
    request.resume();
    done('too_large');
    return;
  }
  let first: Buffer | undefined;
  let chunks: Buffer[] | undefined;
  let held = 0;

  function onData(chunk: Buffer): void {
    if (held + chunk.length > bodyBytes) return refuse('too_large');
    if (!budget.take(chunk.length)) return refuse('overloaded');
    held += chunk.length;
    if (first === undefined) first = chunk;
    else if (chunks === undefined) chunks = [first, chunk];
    else chunks.push(chunk);
  }
  function onEnd(): void {
    stop();
    done(chunks === undefined ? (first ?? EMPTY) : Buffer.concat(chunks, held));
  }
  function onError(): void {
    refuse('aborted');
  }
  function refuse(reason: 'too_large' | 'overloaded' | 'aborted'): void {
    stop();
    budget.give(held);
    // Ignore late errors of the connection because no other listener is left.
    request.on('error', () => {});
    request.resume();
    done(reason);
  }
  function stop(): void {
    request.removeListener('data', onData);
    request.removeListener('end', onEnd);
    request.removeListener('error', onError);
  }
  request.on('data', onData);
  request.on('end', onEnd);
  request.on('error', onError);
}
