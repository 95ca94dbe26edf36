import { existsSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The Debian package of the library that changes the time which a process reads. */
export const FAKETIME_PACKAGE = 'libfaketime';
const LIBRARY = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
/**
 * This library is loaded before jemalloc, which reads the time during startup, when the other library can't respond
 * yet.
 */
const ALLOCATOR = '/lib/x86_64-linux-gnu/libc.so.6';

export const hasFaketime = () => existsSync(LIBRARY);

/** The clock of a Redis, which reads its offset from a file. */
export interface RedisClock {
  /** The environment of redis-server. Empty without the library. */
  readonly env: Readonly<Record<string, string>>;
  /** Changes the clock by this number of seconds, forward or back. */
  readonly set: (offsetSeconds: number) => Promise<void>;
}

/** Creates a clock with the correct time, using a file in an existing folder. */
export async function createRedisClock(folder: string): Promise<RedisClock> {
  const file = join(folder, 'clock');

  async function set(offsetSeconds: number): Promise<void> {
    await writeFile(`${file}.new`, `${offsetSeconds < 0 ? '' : '+'}${offsetSeconds}`);
    await rename(`${file}.new`, file);
  }

  await set(0);
  if (!hasFaketime()) return { env: {}, set };
  return {
    env: {
      LD_PRELOAD: `${LIBRARY} ${ALLOCATOR}`,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      // This clock is used for timeouts.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    set,
  };
}
