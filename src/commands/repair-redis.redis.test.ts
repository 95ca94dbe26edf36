import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../test/support/redis/server.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { repairAppendOnlyFile } from './append-only-file.ts';
import { repairRedis } from './repair-redis.ts';

const SCRIPT = "redis.call('SET', 'a', ARGV[1]) redis.call('SET', 'b', ARGV[1])";

let folder: string;
/** The file after three writes, the last of which is the transaction of a script. */
let whole: Buffer;
let scriptAt: number;

const fileOf = (dir: string) => join(dir, 'appendonlydir', 'appendonly.aof.1.incr.aof');
const write = (bytes: Buffer) => writeFileSync(fileOf(folder), bytes);
const redisFixes = () => {
  const manifest = join(folder, 'appendonlydir', 'appendonly.aof.manifest');
  spawnSync('redis-check-aof', ['--fix', manifest], { input: 'y\n' });
  return readFileSync(fileOf(folder)).length;
};

beforeAll(async () => {
  const dir = await temporaryFolder('repair');
  folder = dir.path;
  const redis = await startRedis({ appendonly: true, dir: folder });
  await redis.command('SET', 'first', 'x'.repeat(40));
  await redis.command('SET', 'second', 'y'.repeat(40));
  scriptAt = readFileSync(fileOf(folder)).length;
  await redis.command('EVAL', SCRIPT, 0, 'z'.repeat(20));
  await redis.stop();
  whole = readFileSync(fileOf(folder));
  return () => dir.remove();
});

test('removes all of an incomplete script, as redis-check-aof does, wherever its write was interrupted', () => {
  for (let bytes = scriptAt; bytes <= whole.length; bytes++) {
    write(whole.subarray(0, bytes));
    const kept = bytes === whole.length ? bytes : scriptAt;
    expect(repairAppendOnlyFile(folder), `${bytes}`).toEqual({ file: fileOf(folder), bytes, keptBytes: kept });
    expect(readFileSync(fileOf(folder))).toEqual(whole.subarray(0, kept));
  }
  for (const bytes of [scriptAt + 1, scriptAt + 16, scriptAt + 60, whole.length - 1]) {
    write(whole.subarray(0, bytes));
    expect(redisFixes()).toBe(scriptAt);
  }
});

test('a script that was interrupted has no effect after two restarts', async () => {
  write(whole.subarray(0, whole.length - 30));
  expect(await repairRedis([folder], {})).toBe(0);
  for (let i = 0; i < 2; i++) {
    const redis = await startRedis({ appendonly: true, dir: folder });
    onTestFinished(redis.stop);
    expect(await redis.command('MGET', 'a', 'b', 'first')).toEqual([null, null, 'x'.repeat(40)]);
    await redis.command('EVAL', "redis.call('SET', 'c', 1) redis.call('SET', 'd', 1)", 0);
    await redis.kill();
  }
});

test('removes an incomplete argument that contains a command', () => {
  const argument = '{"a": "\r\n*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$90\r\n';
  write(Buffer.concat([whole, Buffer.from(`*3\r\n$3\r\nSET\r\n$1\r\na\r\n$900\r\n${argument}`)]));
  expect(repairAppendOnlyFile(folder)?.keptBytes).toBe(whole.length);
});

test('refuses a file that is damaged before its last write, from which redis-check-aof would remove good writes', () => {
  const text = whole.toString('latin1');
  const damages = {
    'a byte of a length': text.replace('$40\r\nxxx', '$4x\r\nxxx'),
    'a shorter length': text.replace('$40\r\nxxx', '$39\r\nxxx'),
    'a length that nobody writes': text.replace('$40\r\nxxx', '$99999999\r\nxxx'),
    'zeros at the end, as after a power failure': `${text}${'\0'.repeat(100)}`,
    'another byte at the start of a command': text.replace('*3\r\n$3\r\nSET\r\n$6', '?3\r\n$3\r\nSET\r\n$6'),
  };
  for (const [name, damage] of Object.entries(damages)) {
    const bytes = Buffer.from(damage, 'latin1');
    expect(bytes, name).not.toEqual(whole);
    write(bytes);
    expect(() => repairAppendOnlyFile(folder), name).toThrow(
      /is damaged at byte \d+, before its last write\. .* Restore the volume from a backup\. .* redis-check-aof --fix /,
    );
    expect(readFileSync(fileOf(folder))).toEqual(bytes);
  }
  write(Buffer.from(damages['a length that nobody writes'], 'latin1'));
  expect(redisFixes()).toBeLessThan(scriptAt);
});

test('does nothing in an empty folder, and needs its path', async () => {
  const empty = await temporaryFolder('repair');
  onTestFinished(empty.remove);
  expect(repairAppendOnlyFile(empty.path)).toBeUndefined();
  expect(await repairRedis([empty.path], {})).toBe(0);
  await expect(repairRedis([], {})).rejects.toThrow('usage: sluice repair-redis');
});
