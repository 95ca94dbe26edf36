import { createConnection, type Socket } from 'node:net';

/** A persistent connection with at most one request in progress. */
export interface Connection {
  readonly send: (request: Buffer) => void;
  readonly close: () => void;
}

const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * Opens a connection. Calls `onAnswer` with the status of each response, and `onError` once if the connection fails.
 */
export function openConnection(
  port: number,
  onAnswer: (status: number) => void,
  onError: (error: Error) => void,
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket: Socket = createConnection({ port, host: '127.0.0.1', noDelay: true });
    let rest: Buffer | undefined;
    let closed = false;
    const fail = (error: Error) => {
      if (closed) return;
      closed = true;
      socket.destroy();
      reject(error);
      onError(error);
    };
    socket.on('error', fail);
    socket.on('close', () => fail(new Error('the server closed the connection')));
    socket.on('connect', () =>
      resolve({
        send: request => {
          socket.write(request);
        },
        close: () => {
          closed = true;
          socket.destroy();
        },
      }),
    );
    socket.on('data', chunk => {
      const bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
      const head = bytes.indexOf(HEAD_END);
      const length = head < 0 ? undefined : contentLength(bytes, head);
      if (length === undefined || bytes.length < head + HEAD_END.length + length) {
        rest = bytes;
        return;
      }
      rest = undefined;
      // "HTTP/1.1 202 …"
      onAnswer(((bytes[9] as number) - 48) * 100 + ((bytes[10] as number) - 48) * 10 + (bytes[11] as number) - 48);
    });
  });
}

/** Returns the `content-length` of a message whose head ends at `end`, or 0 if there is none. */
export function contentLength(bytes: Buffer, end: number): number {
  const found = /\r\ncontent-length: *(\d+)/i.exec(bytes.toString('latin1', 0, end));
  return found === null ? 0 : Number(found[1]);
}
