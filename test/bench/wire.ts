/**
 * The events sent by the generator: a JSON body of 1 KiB. Its fields are at fixed positions, so that they can be read
 * without parsing. `sent` is the planned time in µs of the monotonic clock, which is the same for all processes.
 */

export const GROUP_KEYS = 100;
export const BODY_BYTES = 1_024;

const FIELDS = { run: 5, sent: 15, key: 3, n: 8 } as const;
type Field = keyof typeof FIELDS;

const names = Object.keys(FIELDS) as Field[];
const head = `{${names.map(name => `"${name}":"${'0'.repeat(FIELDS[name])}"`).join(',')},"pad":"`;
const template = Buffer.from(`${head}${'x'.repeat(BODY_BYTES - head.length - 2)}"}`);
const places = Object.fromEntries(names.map(name => [name, head.indexOf(`"${name}":"`) + name.length + 4])) as Record<
  Field,
  number
>;

/** Returns the time of the monotonic clock, in µs. */
export function nowUs(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}

export interface Target {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Returns a request for the group key `key`, without the fields written by `stamp`. */
export function buildRequest(target: Target, key: number): Buffer {
  const headers = {
    host: `127.0.0.1:${target.port}`,
    'content-type': 'application/json',
    'content-length': String(BODY_BYTES),
    'x-sluice-group-key': groupKey(key),
    ...target.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const request = Buffer.from(`POST ${target.path} HTTP/1.1\r\n${lines.join('')}\r\n${template}`);
  writeDigits(request, request.length - BODY_BYTES, 'key', key);
  return request;
}

export function groupKey(key: number): string {
  return `key-${String(key).padStart(FIELDS.key, '0')}`;
}

/** Writes the run, the planned time in µs, and the number within the run. */
export function stamp(request: Buffer, run: number, sentUs: number, n: number): void {
  const body = request.length - BODY_BYTES;
  writeDigits(request, body, 'run', run);
  writeDigits(request, body, 'sent', sentUs);
  writeDigits(request, body, 'n', n);
}

/** Returns a field of the body starting at index `body`. */
export function readField(bytes: Buffer, body: number, field: Field): number {
  let value = 0;
  const end = body + places[field] + FIELDS[field];
  for (let at = body + places[field]; at < end; at++) value = value * 10 + (bytes[at] as number) - 48;
  return value;
}

function writeDigits(bytes: Buffer, body: number, field: Field, value: number): void {
  let rest = value;
  for (let at = body + places[field] + FIELDS[field] - 1; at >= body + places[field]; at--) {
    bytes[at] = 48 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
}
