import { closeSync, fsyncSync, ftruncateSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';

const CHUNK_BYTES = 1 << 20;
/** The longest line that starts a command or an argument. Annotations may be longer. */
const LINE_BYTES = 1_024;
/** The longest argument whose end can be missing. Sluice never writes longer arguments. */
const TORN_BYTES = 64 << 20;

/** The number of complete bytes, or the position of the damage. */
type Ending = { readonly keptBytes: number } | { readonly damagedAt: number };

/** The result of `repairAppendOnlyFile`. */
export interface Repair {
  readonly file: string;
  readonly bytes: number;
  readonly keptBytes: number;
}

/** Thrown if more than an incomplete last write would have to be removed. */
export class DamagedFileError extends Error {
  override readonly name = 'DamagedFileError';
}

/**
 * Removes an incomplete write from the end of the append-only file in this folder, including all of its transaction.
 * Redis 7 only removes its last command: after a second restart, the rest of the transaction would take effect. Unlike
 * `redis-check-aof --fix`, this refuses a file with a damaged command that Redis refuses, too.
 *
 * @returns undefined if there is no file that Redis appends to
 */
export function repairAppendOnlyFile(folder: string): Repair | undefined {
  const manifest = join(folder, 'appendonlydir', 'appendonly.aof.manifest');
  const file = lastFile(folder, manifest);
  if (file === undefined) return undefined;
  const fd = openSync(file, 'r+');
  try {
    const bytes = statSync(file).size;
    const ending = findEnding(fd, bytes);
    if ('damagedAt' in ending) throw damaged(file, manifest, bytes, ending.damagedAt);
    if (ending.keptBytes < bytes) {
      ftruncateSync(fd, ending.keptBytes);
      fsyncSync(fd);
    }
    return { file, bytes, keptBytes: ending.keptBytes };
  } finally {
    closeSync(fd);
  }
}

function damaged(file: string, manifest: string, bytes: number, at: number): Error {
  return new DamagedFileError(
    `${file} is damaged at byte ${at}, before its last write. It was not changed, and Redis is not started. Restore the volume from a backup. If you accept the loss of the ${bytes - at} bytes after this, run redis-check-aof --fix ${manifest} in a pod with this volume`,
  );
}

/** Returns the file that Redis appends to, which is the last one in the manifest. */
function lastFile(folder: string, manifest: string): string | undefined {
  try {
    const names = [...readFileSync(manifest, 'utf8').matchAll(/^file (\S+) seq \d+ type i/gm)];
    const name = names.at(-1)?.[1];
    const file = name === undefined ? undefined : join(folder, 'appendonlydir', name);
    return file !== undefined && statSync(file).isFile() ? file : undefined;
  } catch (error) {
    // Redis creates these files when it starts.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Reads a file of this length from its start. */
function createReader(fd: number, size: number) {
  let chunk = Buffer.alloc(0);
  let chunkAt = 0;
  const read = (at: number, length: number): Buffer => {
    const end = Math.min(at + length, size);
    if (at < chunkAt || end > chunkAt + chunk.length) {
      chunk = Buffer.allocUnsafe(Math.min(Math.max(CHUNK_BYTES, end - at), size - at));
      chunk = chunk.subarray(0, readSync(fd, chunk, 0, chunk.length, at));
      chunkAt = at;
    }
    return chunk.subarray(at - chunkAt, end - chunkAt);
  };
  return { size, read };
}

type Reader = ReturnType<typeof createReader>;

/** The reason why a command can't be read: the file ends before the command does, or the bytes aren't a command. */
type Unreadable = 'torn' | 'damaged';

function findEnding(fd: number, size: number): Ending {
  const reader = createReader(fd, size);
  let at = 0;
  /** The start of the transaction that has not ended yet. */
  let transactionAt: number | undefined;
  while (at < size) {
    const command = readCommand(reader, at);
    if (command === 'damaged') return { damagedAt: at };
    if (command === 'torn') return { keptBytes: transactionAt ?? at };
    if (command.word === 'MULTI') transactionAt ??= at;
    if (command.word === 'EXEC') transactionAt = undefined;
    at = command.end;
  }
  return { keptBytes: transactionAt ?? at };
}

/** Returns the end of a command or an annotation, and the word of a command that has no arguments. */
function readCommand(reader: Reader, start: number): { end: number; word?: string } | Unreadable {
  if (reader.read(start, 1)[0] === 0x23) return readAnnotation(reader, start);
  const count = readNumber(reader, start, '*');
  if (typeof count === 'string') return count;
  if (count.value === 0) return 'damaged';
  let at = count.end;
  for (let i = 0; i < count.value; i++) {
    const length = readNumber(reader, at, '$');
    if (typeof length === 'string') return length;
    const end = length.end + length.value + 2;
    if (end > reader.size) return isTorn(reader, length.end, length.value) ? 'torn' : 'damaged';
    if (reader.read(end - 2, 2).toString('latin1') !== '\r\n') return 'damaged';
    if (count.value === 1) {
      return { end, word: reader.read(length.end, Math.min(length.value, 8)).toString('latin1').toUpperCase() };
    }
    at = end;
  }
  return { end: at };
}

function readAnnotation(reader: Reader, start: number): { end: number } | Unreadable {
  const length = reader.read(start, LINE_BYTES).indexOf('\r\n');
  if (length >= 0) return { end: start + length + 2 };
  return reader.size - start < LINE_BYTES ? 'torn' : 'damaged';
}

/** Reads a line that consists of `prefix` and a number. */
function readNumber(reader: Reader, at: number, prefix: string): { value: number; end: number } | Unreadable {
  const line = reader.read(at, 16);
  const length = line.indexOf('\r\n');
  const text = line.toString('latin1', 0, length < 0 ? line.length : length);
  const digits = text.slice(1);
  if (text !== '' && text[0] !== prefix) return 'damaged';
  if (length >= 0) return /^\d{1,10}$/.test(digits) ? { value: Number(digits), end: at + length + 2 } : 'damaged';
  return at + line.length === reader.size && /^\d*\r?$/.test(digits) ? 'torn' : 'damaged';
}

/**
 * Returns true if the file ends within this argument. The bytes of an argument are not searched for other commands
 * because a producer can publish an event that looks like a command.
 */
function isTorn(reader: Reader, at: number, length: number): boolean {
  const left = reader.size - at;
  if (length > TORN_BYTES || left > TORN_BYTES) return false;
  return left <= length || reader.read(at + length, left - length).toString('latin1') === '\r';
}
