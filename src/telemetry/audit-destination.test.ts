import { execFileSync } from 'node:child_process';
import { constants } from 'node:fs';
import { open, readFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { type AuditTarget, openAuditDestination } from './audit-destination.ts';
import { createLogger } from './log.ts';

let folder: string;
const counts = { written: 0, lost: 0 };
beforeEach(async () => {
  folder = (await temporaryFolder('audit')).path;
  Object.assign(counts, { written: 0, lost: 0 });
});

const start = (
  target: AuditTarget,
  {
    bufferBytes,
    nowMs,
    log = createLogger({ level: 'silent' }),
  }: Partial<Parameters<typeof openAuditDestination>[0]> = {},
) =>
  openAuditDestination({
    target,
    lostLine: lost => `${JSON.stringify({ lost })}\n`,
    log,
    count: (result, lines) => {
      counts[result] += lines;
    },
    ...(bufferBytes === undefined ? {} : { bufferBytes }),
    ...(nowMs === undefined ? {} : { nowMs }),
  });

async function until(is: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await is()); tries++) {
    if (tries === 400) throw new Error('the condition was not true in time');
    await delay(25);
  }
}

test('the file contains all lines in order, after the existing ones', async () => {
  const file = join(folder, 'audit.log');
  for (const from of [0, 500]) {
    const destination = await start({ file });
    for (let n = from; n < from + 500; n++) destination.write(`${n} ${'x'.repeat(n)}\n`);
    await destination.close();
  }
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
  expect(lines.map(line => Number(line.split(' ')[0]))).toEqual(Array.from({ length: 1_000 }, (_, n) => n));
  expect(counts).toEqual({ written: 1_000, lost: 0 });
});

test('a new file can only be read by its owner', async () => {
  const file = join(folder, 'audit.log');
  const destination = await start({ file });
  await destination.close();
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

test('lines of several processes are not mixed in a pipe that is full', async () => {
  const file = join(folder, 'pipe');
  execFileSync('mkfifo', [file]);
  const reader = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  const destinations = [await start({ file }), await start({ file })];
  for (const [at, destination] of destinations.entries()) {
    for (let n = 0; n < 150; n++) destination.write(`${String(at).repeat(999)}\n`);
  }
  let read = '';
  const buffer = Buffer.alloc(10_000);
  await until(async () => {
    const { bytesRead } = await reader.read(buffer, 0, buffer.length).catch(() => ({ bytesRead: 0 }));
    read += buffer.toString('utf8', 0, bytesRead);
    return read.length === 300_000;
  });
  expect(read.split('\n').filter(line => !/^(?:0{999}|1{999}|)$/.test(line))).toEqual([]);
  for (const destination of destinations) await destination.close();
  await reader.close();
});

test('a renamed file is replaced by a new one', async () => {
  const file = join(folder, 'audit.log');
  const destination = await start({ file });
  destination.write('before\n');
  await until(() => counts.written === 1);
  await rename(file, `${file}.1`);
  await until(async () => {
    destination.write('after\n');
    return (await readFile(file, 'utf8').catch(() => '')) !== '';
  });
  await destination.close();
  expect(await readFile(`${file}.1`, 'utf8')).toMatch(/^before\n(after\n)*$/);
  expect(await readFile(file, 'utf8')).toMatch(/^(after\n)+$/);
});

test('an inherited descriptor is written to', async () => {
  const handle = await open(join(folder, 'given'), 'w+');
  const destination = await start({ fd: handle.fd });
  destination.write('line\n');
  await destination.close();
  expect((await handle.readFile('utf8')) || (await readFile(join(folder, 'given'), 'utf8'))).toBe('line\n');
  await handle.close();
});

test.each<[string, () => AuditTarget]>([
  ['a folder', () => ({ file: folder })],
  ['a file in a folder that does not exist', () => ({ file: join(folder, 'a', 'b') })],
  ['a descriptor that is not open', () => ({ fd: 9_876 })],
  [
    'a named pipe without a reader',
    () => {
      execFileSync('mkfifo', [join(folder, 'pipe')]);
      return { file: join(folder, 'pipe') };
    },
  ],
])('%s is refused immediately', async (_what, target) => {
  await expect(start(target())).rejects.toMatchObject({ code: expect.stringMatching(/^E[A-Z]+$/) });
});

test('keeps lines in memory while a reader is blocked, and then counts lost lines', async () => {
  const file = join(folder, 'pipe');
  execFileSync('mkfifo', [file]);
  const reader = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  const destination = await start({ file }, { bufferBytes: 200_000 });
  const line = `${'x'.repeat(999)}\n`;
  const beganMs = performance.now();
  for (let n = 0; n < 1_000; n++) destination.write(line);
  expect(performance.now() - beganMs).toBeLessThan(1_000);
  expect(counts.lost).toBeGreaterThan(500);
  expect(destination.impairments()).toMatchObject([{ reason: 'AuditUnavailable', cause: 'dependency' }]);
  const lost = counts.lost;

  let read = '';
  const buffer = Buffer.alloc(65_536);
  await until(async () => {
    const { bytesRead } = await reader.read(buffer, 0, buffer.length).catch(() => ({ bytesRead: 0 }));
    read += buffer.toString('utf8', 0, bytesRead);
    return read.includes('lost');
  });
  expect(destination.impairments().map(({ message }) => message)).toEqual([
    'Audit lines are being written to the file in SLUICE_AUDIT_FILE again. Lines were lost in the last 5 minutes (sluice_facade_audit_lines_total). Check that it accepts writes and has space left.',
  ]);
  await destination.close();
  const lines = read.trimEnd().split('\n');
  expect(JSON.parse(lines.pop() as string)).toEqual({ lost });
  expect(lines).toHaveLength(1_000 - lost);
  expect(new Set(lines)).toEqual(new Set([line.trimEnd()]));
  await reader.close();
});

test('keeps a line while the disk is full, and writes it afterwards', async () => {
  const link = join(folder, 'audit.log');
  const pointTo = (file: string) => execFileSync('ln', ['-sfn', file, link]);
  pointTo(join(folder, 'first'));
  const destination = await start({ file: link });
  pointTo('/dev/full');
  await delay(1_100);
  destination.write('line\n');
  await delay(300);
  expect(counts).toEqual({ written: 0, lost: 0 });
  pointTo(join(folder, 'second'));
  await until(() => counts.written === 1);
  expect(await readFile(join(folder, 'second'), 'utf8')).toBe('line\n');
  expect(destination.impairments()).toEqual([]);
  await destination.close();
});

test('lines that are late or lost are reported until five minutes after the last loss, and logged once a minute', async () => {
  const file = join(folder, 'pipe');
  execFileSync('mkfifo', [file]);
  const reader = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  const clock = { ms: 0 };
  const logged: unknown[] = [];
  const log = pino({}, { write: line => void logged.push(JSON.parse(line).lost) });
  const destination = await start({ file }, { bufferBytes: 200_000, nowMs: () => clock.ms, log });
  const line = `${'x'.repeat(999)}\n`;
  for (let n = 0; n < 150; n++) destination.write(line);
  const drain = async () => {
    const buffer = Buffer.alloc(65_536);
    await until(async () => {
      await reader.read(buffer, 0, buffer.length).catch(() => undefined);
      // The last line contains the number of lost lines.
      return counts.written === 351 - counts.lost + 1;
    });
  };
  // A pipe has room for 64 KiB.
  await until(() => counts.written >= 60);
  await delay(500);
  expect(destination.impairments()).toEqual([]);
  clock.ms = 5_001;
  expect(destination.impairments()).toMatchObject([{ message: expect.stringContaining('cannot be written to') }]);
  for (let n = 0; n < 200; n++) destination.write(line);
  expect(logged).toEqual([1]);
  clock.ms += 60_000;
  destination.write(line);
  expect(logged).toEqual([1, counts.lost]);
  await drain();
  expect(destination.impairments()).toMatchObject([{ message: expect.stringContaining('Lines were lost') }]);
  clock.ms += 300_000;
  expect(destination.impairments()).toEqual([]);
  await destination.close();
  await reader.close();
});
