import { expect, test } from 'vitest';
import { planRoutes } from '../../record/control-plan.ts';
import { createTenant, QUEUE } from '../../record/testing/tenant.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { partKeys } from '../keys.ts';
import { createPartsControl } from './parts-control.ts';
import { partOf } from './wanted-part.ts';

onEachRedis(redis => {
  test('group keys are closed even if a controller crashed while it was removing the stream', async () => {
    const t = createTenant(redis());
    const integration = t.nameOf('a');
    const want = t.routes({ a: {} });
    const dying = createPartsControl(
      redis(),
      { ...t.control, forgetQueue: () => Promise.reject(new Error('died')) },
      t.nowMs,
    );
    const stored = await dying.readTenant(t.tenant, 1);
    const openKeys = () => new Map([[integration, [{ groupKey: 'k', sinceMs: 1 }]]]);
    await dying.applyParts({ fence: 1, have: stored.routes, want, isKnown: false, openKeys });
    await dying.patch(1, planRoutes(stored, want).patches);
    await dying.setActivation(1, integration, 'k', 1);
    await expect(dying.dropQueue(1, t.tenant, QUEUE, 'gen1')).rejects.toThrow('died');

    const next = createPartsControl(redis(), t.control, t.nowMs);
    await next.readTenant(t.tenant, 1);
    expect(await next.setActivation(1, integration, 'k', null)).toBe(true);
    expect(await next.readActivations(integration)).toEqual(new Map());
    // Nothing must be opened in this part.
    await expect(next.setActivation(1, integration, 'k', 1)).rejects.toThrow('another generation');
    // After an hour, Redis does not have any data of the part.
    await redis().call('del', partKeys(partOf(t.tenant, QUEUE, { gen: 'gen1' })).meta);
    expect(await next.setActivation(1, integration, 'k', null)).toBe(true);
  });
});
