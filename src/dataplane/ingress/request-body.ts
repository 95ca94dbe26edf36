import type { IncomingMessage } from 'node:http';

/** Bytes that may be held at a time, by all who share it. */
export interface ByteBudget {
  /** False, and nothing taken, when it would be exceeded. */
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

/** The body, or why there is none: larger than allowed, no memory for it, or the sender went away. */
export type BodyResult = Buffer | 'too_large' | 'overloaded' | 'aborted';

const EMPTY = Buffer.alloc(0);

/**
 * Reads a request's body as it is, whatever its content type. What it holds is taken from `budget` as it arrives; the
 * bytes of a Buffer that `done` gets are the caller's to give back, all others are given back here. After a refusal
 * the rest of the body is read and dropped, so that the sender sees the answer instead of a reset connection.
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
    // A late error of a connection that nobody listens to any more is none of ours.
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
