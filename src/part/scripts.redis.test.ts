import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { readNamedScript } from '../redis/named-scripts.ts';
import { onEachRedis } from '../redis/testing/each-redis.ts';

const FOLDER = import.meta.dirname;
const SCRIPTS = globSync('**/*.lua', { cwd: FOLDER }).filter(path =>
  readFileSync(join(FOLDER, path), 'utf8').startsWith('#!lua'),
);

onEachRedis(redis => {
  test.each(SCRIPTS)('Redis compiles %s, which must have at most 200 local variables', async path => {
    const { source } = readNamedScript(pathToFileURL(join(FOLDER, path)));
    for (const sha1 of await redis().callAll('SCRIPT', 'LOAD', source)) expect(sha1).toMatch(/^[0-9a-f]{40}$/);
  });
});
