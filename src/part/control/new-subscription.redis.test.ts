import { expect, test } from 'vitest';
import { withClock } from '../../../test/support/part/clock.ts';
import { putRoutes } from '../../../test/support/part/routes.ts';
import { createTenant, QUEUE } from '../../record/testing/tenant.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createAdvance } from '../catchup/advance.ts';
import { type Part, partKeys } from '../keys.ts';
import { createIngest } from '../log/ingest.ts';
import { createPartsControl } from './parts-control.ts';

const FENCE = 1;

onEachRedis(redis => {
  test('an event that is stored while a new subscription is being written is routed to it', async () => {
    const t = createTenant(redis());
    const client = { ...redis(), ...withClock(redis(), t.nowMs) };
    const part: Part = { tenant: t.tenant, queue: QUEUE, gen: 'gen1', number: 0 };
    const { meta, body, pending } = partKeys(part);
    async function publish(): Promise<void> {
      const { cfgv = '' } = await redis().readHash(meta);
      const event = { groupKey: 'k', meta: '{"s":"/x"}', body: Buffer.from('between') };
      const { answer } = await createIngest(client, t.nowMs)(part, cfgv, [event]);
      expect(answer).toBe('OK');
    }
    // Calls are not counted before the subscription is added.
    let calls = Number.NEGATIVE_INFINITY;
    const interrupted: typeof client = {
      ...client,
      runNamed: async (script, call) => {
        // The first call writes the new row, and the second one its activations.
        if (script.name === 'gate' && ++calls === 2) await publish();
        return client.runNamed(script, call);
      },
    };
    const openKeys = () => new Map([[t.nameOf('x'), [{ groupKey: 'k', sinceMs: t.clock.ms }]]]);
    const control = createPartsControl(interrupted, t.control, t.nowMs);
    await putRoutes(control, { fence: FENCE, want: t.routes({}), isKnown: false, openKeys });
    calls = 0;
    await putRoutes(control, { fence: FENCE, want: t.routes({ x: {} }), isKnown: true, openKeys });
    expect(calls).toBeGreaterThan(2);
    expect(await createAdvance(client)(part)).toMatchObject({ answer: 'OK' });
    const refs = ((await redis().call('zrange', pending, 0, -1)) as string[]).map(each => each.split('\0')[1]);
    const bodies = await redis().readHash(body);
    expect(refs.map(ref => bodies[ref as string])).toEqual(['between']);
  });
});
