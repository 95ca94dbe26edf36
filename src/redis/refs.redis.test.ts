import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { refMs, refOfStreamId } from '../core/ids/refs.ts';
import { onEachRedis } from './testing/each-redis.ts';

const LUA = `${readFileSync(new URL('./scripts/lib/ref.lua', import.meta.url), 'utf8')}
local out = {}
for i, id in ipairs(ARGV) do
  local ref = refOf(id)
  out[i] = { ref, string.format('%.0f', refMs(ref)) }
end
return out`;

const id = fc
  .tuple(fc.bigInt(0n, 2n ** 50n - 1n), fc.integer({ min: 0, max: 2 ** 25 - 1 }))
  .map(([ms, seq]) => `${ms}-${seq}`);

onEachRedis(redis => {
  test('Lua and TypeScript make the same refs', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(id, { minLength: 1, maxLength: 50 }), async ids => {
        const answers = (await redis().call('eval', LUA as never, 1, '{x}', ...ids)) as [string, string][];
        expect(answers).toEqual(ids.map(each => [refOfStreamId(each), String(refMs(refOfStreamId(each)))]));
      }),
      { numRuns: 40 },
    );
  });
});
