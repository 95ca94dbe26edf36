import { connect } from 'node:net';

/**
 * A received response. `status` is 0 if the connection was closed without a response. Header names are in lower case.
 */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The time for which a test waits for a response, in milliseconds. */
const SILENCE_MS = 10_000;

/**
 * Writes bytes (or text as latin1) to a new connection. Resolves to the first complete response, or to the data
 * received before the server closed the connection. Does not close its own side first because Node would discard the
 * response.
 */
export function exchange(port: number, bytes: string | Buffer): Promise<RawAnswer> {
  const sent = typeof bytes === 'string' ? latin1(bytes) : bytes;
  const isHead = sent.subarray(0, 5).equals(latin1('HEAD '));
  return new Promise(resolve => {
    let got = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(sent));
    socket.setTimeout(SILENCE_MS, () => socket.destroy());
    socket.on('data', chunk => {
      got += chunk.toString('latin1');
      if (isComplete(parseAnswer(got), isHead)) socket.destroy();
    });
    // A server that refuses a request before its end resets the connection, so the response received until then is
    // used.
    socket.on('error', () => {});
    socket.on('close', () => resolve(parseAnswer(got)));
  });
}

const latin1 = (text: string) => Buffer.from(text, 'latin1');

function isComplete({ status, headers, body }: RawAnswer, isHead: boolean): boolean {
  // The length is the length of the body that a GET request would return. If the server closes the connection, also
  // wait for a body.
  if (isHead && status !== 0 && headers['connection'] !== 'close') return true;
  const length = headers['content-length'];
  return status !== 0 && (length === undefined ? body.endsWith('0\r\n\r\n') : body.length >= Number(length));
}

function parseAnswer(received: string): RawAnswer {
  const text = received.replace(/^HTTP\/1\.1 100 [^\r]*\r\n\r\n/, '');
  const end = text.indexOf('\r\n\r\n');
  const [first = '', ...lines] = text.slice(0, Math.max(end, 0)).split('\r\n');
  const headers = Object.fromEntries(
    lines.map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1] ?? 0), headers, body: text.slice(end + 4) };
}
