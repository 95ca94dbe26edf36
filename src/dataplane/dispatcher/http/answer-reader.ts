/**
 * The maximum size of a status line including its headers, of the trailers, and of the size of a chunk including its
 * extensions.
 */
const LINES_MAX = 16 * 1024;
/** The maximum size of a response on the wire, including informational responses and chunk sizes. */
const WIRE_MAX = 128 * 1024;
/**
 * The size that a part of a response counts as at least. Reading a TLS record takes 2 to 3 µs even if it contains a
 * single byte.
 */
const PART_BYTES = 16;

const START = 'HTTP/1.';
const STATUS_LINE = /^HTTP\/1\.([01]) (\d{3})(?: [^\r]*)?$/;
/** The value must not start with a blank because a line of blanks could then be split in a quadratic number of ways. */
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*((?:[\x21-\x7e\x80-\xff][\t\x20-\x7e\x80-\xff]*)?)$/;
const LENGTH = /^\d{1,19}[\t ]*$/;
/** Matches the size of a chunk, which has up to 48 bits and is followed by extensions. */
const CHUNK_SIZE =
  /^([0-9A-Fa-f]{1,12})(?:;(?=[^;])[!#$%&'*+.^_`|~0-9A-Za-z-]*(?:=(?:[!#$%&'*+.^_`|~0-9A-Za-z-]*|"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"))?)*$/;
const LAST_CODING_IS_CHUNKED = /(?:^|,)[\t ]*chunked[\t ]*$/i;
const KEEP_ALIVE_TIMEOUT = /timeout=(\d{1,9})/;

/** The lengths of the names of all headers that we need to read, see `noteField`. */
const NOTED_LENGTHS = new Set(
  ['connection', 'retry-after', 'content-length', 'transfer-encoding', 'webhook-allowed-origin'].map(n => n.length),
);

/** We close a connection this long before the timeout that was announced by the server, in milliseconds. */
const CLOSING_MARGIN_MS = 2_000;
/** The maximum time a connection stays idle, whatever the server says. */
const IDLE_MAX_MS = 60_000;

export interface AnswerEvents {
  /**
   * Called when the headers are complete, except for informational responses (100 to 199, without 101).
   * `allowedOrigin` is the value of `WebHook-Allowed-Origin`.
   */
  readonly onHead: (status: number, retryAfter: string | undefined, allowedOrigin: string | undefined) => void;
  /** Called with parts of the body. The parts are views of a buffer that will be reused. */
  readonly onBody: (part: Buffer) => void;
}

/**
 * `more` means that there is more data for this response. `end` means that the response is complete. Any other value is
 * the reason why no more of the response can be read.
 */
export type Progress = 'more' | 'end' | 'invalid_response' | 'headers_too_large';

export interface AnswerReader {
  /** Starts to read the next response. */
  readonly begin: (events: AnswerEvents) => void;
  /**
   * Reads the bytes when they have arrived. If it has returned anything except for `more`, it must not be called again.
   */
  readonly read: (bytes: Buffer) => Progress;
  /** Returns true if the response is complete when the connection has been closed by the server. */
  readonly finish: () => boolean;
  /**
   * Returns the time for which the connection can be idle after a response has ended, in milliseconds. If it is not
   * possible to use the connection again, this is 0. If the server has not specified this, it is `undefined`.
   */
  readonly idleMs: () => number | undefined;
}

/**
 * In the states `body` and `data`, `left` bytes are read. In the state `untilClosed`, we read until the connection has
 * been closed. All other states except `ended` read a line.
 */
type State = 'status' | 'fields' | 'size' | 'dataEnd' | 'trailers' | 'body' | 'data' | 'untilClosed' | 'ended';

interface Head {
  minor: string;
  status: number;
  length: string | undefined;
  coding: string | undefined;
  connection: string;
  keepAlive: string | undefined;
  retryAfter: string | undefined;
  allowedOrigin: string | undefined;
}

const emptyHead = (): Head => ({
  minor: '1',
  status: 0,
  length: undefined,
  coding: undefined,
  connection: '',
  keepAlive: undefined,
  retryAfter: undefined,
  allowedOrigin: undefined,
});

/**
 * If we need this header, it is recorded.
 *
 * @returns false if the line is not a header, or if it contains the length for a second time. In this case, it is not
 * clear where the response ends (RFC 9112, 6.3)
 */
function noteField(head: Head, line: string): boolean {
  const match = FIELD.exec(line);
  if (match === null) return false;
  const [, name, value] = match as unknown as [string, string, string];
  if (!NOTED_LENGTHS.has(name.length)) return true;
  switch (name.toLowerCase()) {
    case 'content-length':
      if (head.length !== undefined || !LENGTH.test(value)) return false;
      head.length = value;
      return true;
    case 'transfer-encoding':
      head.coding = head.coding === undefined ? value : `${head.coding},${value}`;
      return true;
    case 'connection':
      head.connection += `,${value.toLowerCase()}`;
      return true;
    case 'keep-alive':
      head.keepAlive ??= value;
      return true;
    case 'retry-after':
      head.retryAfter ??= value.trimEnd();
      return true;
    case 'webhook-allowed-origin':
      head.allowedOrigin ??= value.trimEnd();
      return true;
    default:
      return true;
  }
}

/** Returns the time for which the headers allow a connection to be idle, see `AnswerReader.idleMs`. */
function idleMsOf({ minor, connection, keepAlive }: Head): number | undefined {
  const options = connection.split(',').map(option => option.trim());
  const isKept = minor === '1' ? !options.includes('close') : options.includes('keep-alive');
  if (!isKept) return 0;
  const seconds = keepAlive === undefined ? undefined : KEEP_ALIVE_TIMEOUT.exec(keepAlive)?.[1];
  if (seconds === undefined) return undefined;
  return Math.min(IDLE_MAX_MS, Math.max(0, Number(seconds) * 1_000 - CLOSING_MARGIN_MS));
}

/**
 * Creates a reader for the responses on a connection (RFC 9112), one after the other. The reader is stricter than the
 * RFC: a response that a proxy and a client could interpret differently is an invalid response. Bytes after the end of
 * a response don't belong to any request. After them, the connection must not be used again.
 */
export function createAnswerReader(): AnswerReader {
  let events: AnswerEvents;
  let state: State = 'ended';
  let head = emptyHead();
  /** The start of a line for which the end has not been received yet. */
  let partial = '';
  let lineBytes = 0;
  let wireBytes = 0;
  let left = 0;
  let hasSurplus = false;

  const endHead = (): Progress => {
    const { status, length, coding } = head;
    if (status < 100 || status === 101) return 'invalid_response';
    // A client must be able to read these even if it has not asked for them, including 100 (RFC 9110, 15.2).
    if (status < 200) {
      state = 'status';
      lineBytes = 0;
      return 'more';
    }
    if (coding !== undefined && length !== undefined) return 'invalid_response';
    if (status === 204 || status === 304) state = 'ended';
    else if (coding !== undefined) state = LAST_CODING_IS_CHUNKED.test(coding) ? 'size' : 'untilClosed';
    else if (length === undefined) state = 'untilClosed';
    else {
      left = Number(length);
      state = left > 0 ? 'body' : 'ended';
    }
    lineBytes = 0;
    events.onHead(status, head.retryAfter, head.allowedOrigin);
    return 'more';
  };

  const readStatus = (line: string): Progress => {
    // Empty lines before the status line are ignored.
    if (line === '') return 'more';
    const match = STATUS_LINE.exec(line);
    if (match === null) return 'invalid_response';
    head = emptyHead();
    head.minor = match[1] as string;
    head.status = Number(match[2]);
    state = 'fields';
    return 'more';
  };

  const readField = (line: string): Progress => {
    if (line === '') return endHead();
    return noteField(head, line) ? 'more' : 'invalid_response';
  };

  const readSize = (line: string): Progress => {
    const size = CHUNK_SIZE.exec(line)?.[1];
    if (size === undefined) return 'invalid_response';
    left = Number.parseInt(size, 16);
    state = left > 0 ? 'data' : 'trailers';
    lineBytes = 0;
    return 'more';
  };

  const readLine = (line: string): Progress => {
    if (state === 'fields') return readField(line);
    if (state === 'status') return readStatus(line);
    if (state === 'size') return readSize(line);
    if (state === 'dataEnd') {
      state = 'size';
      return line === '' ? 'more' : 'invalid_response';
    }
    if (line === '') state = 'ended';
    else if (!FIELD.test(line)) return 'invalid_response';
    return 'more';
  };

  /** Reads the data of the body, starting at `at`, and returns the position after it. */
  const readData = (bytes: Buffer, at: number): number => {
    const end = state === 'untilClosed' ? bytes.length : Math.min(bytes.length, at + left);
    events.onBody(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end));
    left -= end - at;
    if (left === 0) state = state === 'body' ? 'ended' : state === 'data' ? 'dataEnd' : state;
    return end;
  };

  const readLines = (bytes: Buffer, from: number): Progress | number => {
    const end = bytes.indexOf(0x0a, from);
    const till = end < 0 ? bytes.length : end + 1;
    lineBytes += till - from;
    if (lineBytes > LINES_MAX) return 'headers_too_large';
    const line = partial + bytes.toString('latin1', from, till);
    if (end < 0) {
      partial = line;
      const isStart = state !== 'status' || START.startsWith(line.slice(0, START.length)) || line === '\r';
      return isStart ? till : 'invalid_response';
    }
    partial = '';
    if (line.charCodeAt(line.length - 2) !== 0x0d) return 'invalid_response';
    const progress = readLine(line.slice(0, -2));
    return progress === 'more' ? till : progress;
  };

  return {
    begin(next) {
      events = next;
      state = 'status';
      partial = '';
      lineBytes = 0;
      wireBytes = 0;
      left = 0;
      hasSurplus = false;
    },
    read(bytes) {
      wireBytes += Math.max(PART_BYTES, bytes.length);
      if (wireBytes > WIRE_MAX) return 'headers_too_large';
      let at = 0;
      while (at < bytes.length && state !== 'ended') {
        if (state === 'body' || state === 'data' || state === 'untilClosed') {
          at = readData(bytes, at);
        } else {
          const progress = readLines(bytes, at);
          if (typeof progress === 'string') return progress;
          at = progress;
        }
      }
      hasSurplus = at < bytes.length;
      return state === 'ended' ? 'end' : 'more';
    },
    finish: () => state === 'untilClosed',
    idleMs: () => (hasSurplus || state !== 'ended' ? 0 : idleMsOf(head)),
  };
}
