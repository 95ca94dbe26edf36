import { close, constants, open, type Stats, stat, write } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Logger } from './log.ts';
import type { Impairment } from './role-health.ts';

/** Specifies where audit lines should be written: either a file, or a file descriptor inherited by this process. */
export type AuditTarget = { readonly file: string } | { readonly fd: number };

/**
 * Writes lines of text in the background. The order of the lines is preserved. While the target is not able to accept
 * lines, they are kept in memory.
 */
export interface AuditDestination {
  /** Adds a line to the queue. Never waits. The line is lost if the lines in memory already have `BUFFER_BYTES`. */
  readonly write: (line: string) => void;
  /**
   * Returns the reason why lines are delayed, or why some lines were lost recently. Empty if all lines have been
   * written.
   */
  readonly impairments: () => readonly Impairment[];
  /** Writes the remaining lines (which can take up to 2 s) and closes the file. */
  readonly close: () => Promise<void>;
}

interface DestinationOptions {
  readonly target: AuditTarget;
  /** Returns the line to write instead of the lost lines. */
  readonly lostLine: (lost: number) => string;
  readonly log: Logger;
  readonly count: (result: 'written' | 'lost', lines: number) => void;
  /** The number of bytes to buffer in memory. Defaults to 16 MiB. */
  readonly bufferBytes?: number;
  /** Monotonic clock in milliseconds. */
  readonly nowMs?: () => number;
}

const BUFFER_BYTES = 16_777_216;
/** If up to PIPE_BUF bytes are written to a pipe, they are never mixed with data from other writers. */
const BATCH_BYTES = 4_096;
const RETRY_MS = 100;
const MOST_RETRY_MS = 2_000;
/** The interval at which to check if the file was renamed for log rotation. */
const LOOK_EVERY_MS = 1_000;
/** After this time, a write is considered to be late. */
const LATE_MS = 5_000;
/** The time for which we report that lines have been lost. This time must be longer than the delay of the alert. */
const REPORT_LOST_MS = 300_000;
const LOG_EVERY_MS = 60_000;
const CLOSE_WITHIN_MS = 2_000;

const [openFile, closeFile, statFile, writeFile] = [
  promisify(open),
  promisify(close),
  promisify(stat),
  promisify(write),
];

/** Opens a file for appending. Does not wait for a reader of a named pipe. */
function openForAppending(file: string): Promise<number> {
  const { O_APPEND, O_CREAT, O_NONBLOCK, O_WRONLY } = constants;
  return openFile(file, O_APPEND | O_CREAT | O_NONBLOCK | O_WRONLY, 0o600);
}

/** Returns the descriptor for writing. If the file was renamed, it is reopened. */
function createHandle(target: AuditTarget, nowMs: () => number) {
  let fd = 'fd' in target ? target.fd : undefined;
  let inode: number | undefined;
  let lookedMs = 0;

  async function isRenamed(file: string): Promise<boolean> {
    if (nowMs() - lookedMs < LOOK_EVERY_MS) return false;
    lookedMs = nowMs();
    const found: Stats | undefined = await statFile(file).catch(() => undefined);
    return found?.ino !== inode;
  }

  async function release(): Promise<void> {
    if (fd === undefined || 'fd' in target) return;
    const old = fd;
    fd = undefined;
    await closeFile(old).catch(() => undefined);
  }

  return {
    release,
    async get(): Promise<number> {
      if ('fd' in target) return target.fd;
      if (fd !== undefined && (await isRenamed(target.file))) await release();
      if (fd === undefined) {
        fd = await openForAppending(target.file);
        inode = (await statFile(target.file)).ino;
        lookedMs = nowMs();
      }
      return fd;
    },
  };
}

type Handle = ReturnType<typeof createHandle>;

/** Writes bytes to the target and keeps track of how long this has been taking. */
function createWriter(handle: Handle, nowMs: () => number) {
  let sinceMs: number | undefined;
  let lastError: string | undefined;
  let closing = false;
  return {
    /** The error code of the last attempt. Undefined if the last attempt was successful. */
    lastError: () => lastError,
    isLate: () => sinceMs !== undefined && nowMs() - sinceMs > LATE_MS,
    /** Stops retrying after any other error. */
    close: () => {
      closing = true;
    },
    /**
     * Writes all bytes and retries after an error. Returns false if it was closed before all bytes were written.
     */
    async writeAll(bytes: Buffer): Promise<boolean> {
      sinceMs = nowMs();
      let retryMs = RETRY_MS;
      for (let at = 0; at < bytes.length; ) {
        try {
          at += (await writeFile(await handle.get(), bytes, at)).bytesWritten;
          lastError = undefined;
        } catch (error) {
          const { code = 'unknown error' } = error as NodeJS.ErrnoException;
          // EAGAIN: a pipe is full.
          if (code !== 'EAGAIN') await handle.release();
          lastError = code;
          if (closing) return false;
          await delay(retryMs, undefined, { ref: false });
          retryMs = Math.min(retryMs * 2, MOST_RETRY_MS);
        }
      }
      sinceMs = undefined;
      return true;
    },
  };
}

/** Counts lost lines and logs the number once a minute. */
function createLosses({ log, count }: DestinationOptions, nowMs: () => number) {
  let lost = 0;
  let lostAtMs: number | undefined;
  let loggedMs: number | undefined;
  return {
    isRecent: () => lostAtMs !== undefined && nowMs() - lostAtMs < REPORT_LOST_MS,
    add(code: string | undefined): void {
      lost++;
      lostAtMs = nowMs();
      count('lost', 1);
      if (loggedMs !== undefined && lostAtMs - loggedMs < LOG_EVERY_MS) return;
      loggedMs = lostAtMs;
      log.error({ lost, code }, 'audit lines are lost because the destination does not accept them');
    },
    /** Returns how many lines have been lost since the last call. */
    take(): number {
      const taken = lost;
      lost = 0;
      return taken;
    },
  };
}

/** Returns the number of lines to write at once. */
function batchOf(lines: readonly string[]): number {
  let size = Buffer.byteLength(lines[0] ?? '');
  let count = 1;
  for (; count < lines.length; count++) {
    size += Buffer.byteLength(lines[count] as string);
    if (size > BATCH_BYTES) break;
  }
  return count;
}

/** Returns the impairment of a role whose lines are delayed or lost. */
function impairmentOf(target: AuditTarget, isLate: boolean, hasLost: boolean, code: string | undefined): Impairment {
  const what = 'file' in target ? 'the file in SLUICE_AUDIT_FILE' : `the file descriptor ${target.fd}`;
  const why = code === undefined ? '' : ` (${code})`;
  const state = isLate
    ? `Audit lines cannot be written to ${what}${why}.`
    : `Audit lines are being written to ${what} again.`;
  const loss = hasLost ? ' Lines were lost in the last 5 minutes (sluice_facade_audit_lines_total).' : '';
  const message = `${state}${loss} Check that it accepts writes and has space left.`;
  return { reason: 'AuditUnavailable', cause: 'dependency', message };
}

/**
 * Opens the destination to use for audit lines. Writes run outside the event loop, so a slow target only delays the
 * lines.
 *
 * @throws the error of Node if the file cannot be opened, or the descriptor is not open
 */
export async function openAuditDestination(options: DestinationOptions): Promise<AuditDestination> {
  const { target, lostLine, count, nowMs = () => performance.now(), bufferBytes = BUFFER_BYTES } = options;
  const handle = createHandle(target, nowMs);
  await writeFile(await handle.get(), '');
  const writer = createWriter(handle, nowMs);
  const losses = createLosses(options, nowMs);
  const queue: string[] = [];
  let queuedBytes = 0;
  let running: Promise<void> | undefined;

  function push(line: string): void {
    queue.push(line);
    queuedBytes += Buffer.byteLength(line);
  }

  async function pump(): Promise<void> {
    while (queue.length > 0) {
      const lines = batchOf(queue);
      const bytes = Buffer.from(queue.slice(0, lines).join(''));
      if (!(await writer.writeAll(bytes))) return;
      queue.splice(0, lines);
      queuedBytes -= bytes.length;
      count('written', lines);
      const lost = queue.length === 0 ? losses.take() : 0;
      if (lost > 0) push(lostLine(lost));
    }
    running = undefined;
  }

  return {
    write(line) {
      if (queuedBytes + Buffer.byteLength(line) > bufferBytes) return losses.add(writer.lastError());
      push(line);
      running ??= pump();
    },
    impairments() {
      const [isLate, hasLost] = [writer.isLate(), losses.isRecent()];
      return isLate || hasLost ? [impairmentOf(target, isLate, hasLost, writer.lastError())] : [];
    },
    async close() {
      const timeout = delay(CLOSE_WITHIN_MS, undefined, { ref: false });
      await Promise.race([running, timeout]);
      writer.close();
      await handle.release();
    },
  };
}
