import { beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/deadline.ts';
import { makeSample, type Publisher } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { apply, block, kubectl, pkg, stream, subscription } from '../support/world.ts';

const KEY = 'key';
const OTHER = 'refunds';
const BLOCK = { integration: 'ada', target: { kind: 'Package', name: 'sales' } };

const world = useSmallWorld({ partners: ['ada', 'bob'], groupKeys: [KEY], controllerManager: true });
let refunds: Publisher;

beforeAll(async () => {
  refunds = world.publisherOf(world.sluice, { queue: OTHER });
  const endpoint = (partner: string) => ({ url: world.receiver.urlOf(`${partner}-${OTHER}`) });
  await apply(world.cluster, [
    stream(PRODUCER, OTHER),
    ...['ada', 'bob'].map(partner => subscription(partner, PRODUCER, OTHER, endpoint(partner))),
  ]);
  for (const partner of ['ada', 'bob']) {
    await world.observer.until(['Subscription', `${PRODUCER}-${OTHER}`, partner, 'Live', 'True/Live']);
  }
});

const put = (streams: readonly string[], more: object = {}) => {
  const { spec, ...manifest } = pkg(PRODUCER, 'sales', streams);
  return world.observer.apply({ ...manifest, spec: { ...(spec as object), ...more } });
};
const ready = (is = 'True/Compiled') => world.observer.until(['Package', 'sales', PRODUCER, 'Ready', is]);
const live = (name: string, is: string) => world.observer.until(['Subscription', name, 'ada', 'Live', is]);

/** Sends one event. Bob has received the event when this function returns. */
async function send(id: string, through = refunds, at = `bob-${OTHER}`): Promise<void> {
  expect((await through.post(makeSample(id, KEY, id))).status).toBe(202);
  await world.receiver.arrival(id, at);
}

const attempts = (at: string, prefix: string) =>
  world.receiver.attempts.filter(({ subscription: to, id }) => to === at && id.startsWith(prefix)).map(({ id }) => id);
const messageOf = async (type: string) =>
  kubectl(world.cluster, [
    'get',
    'package/sales',
    '-n',
    PRODUCER,
    '-o',
    `jsonpath={.status.conditions[?(@.type=="${type}")].message}`,
  ]);

describe('a Package', () => {
  it('lists its missing streams until they exist', async () => {
    await put([QUEUE, 'b-missing', 'a-missing', QUEUE]);
    await ready();
    const resolved = ['Package', 'sales', PRODUCER, 'StreamsResolved'] as const;
    await world.observer.until([...resolved, 'False/StreamsMissing']);
    expect(await messageOf('StreamsResolved')).toMatch(/: a-missing, b-missing$/);
    const printed = await kubectl(world.cluster, ['get', 'pkg/sales', '-n', PRODUCER, '--no-headers']);
    expect(printed.trim().split(/\s+/).slice(0, 3)).toEqual(['sales', '3', 'False']);
    await apply(world.cluster, [stream(PRODUCER, 'a-missing'), stream(PRODUCER, 'b-missing')]);
    await world.observer.until([...resolved, 'True/AllFound']);
    await world.observer.remove('CatalogStream', 'b-missing', PRODUCER);
    await world.observer.until([...resolved, 'False/StreamsMissing']);
    await put([QUEUE]);
    await world.observer.until([...resolved, 'True/AllFound']);
  });

  it('blocks an added stream when it is Ready, and resumes a removed stream', async () => {
    await put([QUEUE]);
    await world.observer.apply(block(PRODUCER, 'no-sales', BLOCK));
    await live(SUBSCRIPTION, 'False/Blocked');
    for (let n = 0; n < 10; n++) {
      await put([QUEUE, OTHER]);
      await ready();
      await send(`added.${n}.0`);
      await send(`added.${n}.1`);
      expect(attempts(`ada-${OTHER}`, `added.${n}`)).toEqual([]);
      await put([QUEUE]);
      await live(`${PRODUCER}-${OTHER}`, 'True/Live');
      await world.receiver.arrival(`added.${n}.1`, `ada-${OTHER}`);
      expect(attempts(`ada-${OTHER}`, `added.${n}`)).toEqual([`added.${n}.0`, `added.${n}.1`]);
    }
  });

  it('keeps its Blocks while it is archived; streams can be removed, but not added', async () => {
    await put([QUEUE, OTHER], { archived: true });
    await ready();
    await send('archived.0');
    await send('archived.1', world.publisher, 'bob');
    await expect(put([QUEUE, OTHER, 'a-missing'], { archived: true })).rejects.toMatchObject({
      status: 422,
      detail: expect.stringContaining('only remove them'),
    });
    await put([QUEUE], { archived: true });
    await world.receiver.arrival('archived.0', `ada-${OTHER}`);
    expect(attempts('ada', 'archived')).toEqual([]);
  });

  it('is kept and blocked until its Block is deleted, if it is deleted before', async () => {
    await world.observer.remove('Package', 'sales', PRODUCER);
    await ready('False/StillBlocking');
    expect(await messageOf('Ready')).toMatch(/: no-sales$/);
    await send('deleting.0', world.publisher, 'bob');
    expect(attempts('ada', 'deleting')).toEqual([]);
    await world.observer.untilEvent('Package/sales StillBlocking');
    await world.observer.remove('Block', 'no-sales', PRODUCER);
    const gone = async () => !(await world.observer.exists('Package', 'sales', PRODUCER));
    const { tookMs } = await eventually('the package is deleted', gone);
    console.log(`package deleted ${Math.round(tookMs)} ms after its last Block`);
    await world.receiver.arrival('deleting.0', 'ada');
    expect(attempts('ada', 'archived')).toEqual(['archived.1']);
  });

  it('does not delay the deletion of its namespace, and no events are routed during the deletion', async () => {
    await put([QUEUE, OTHER]);
    await world.observer.apply(block(PRODUCER, 'no-sales', BLOCK));
    await world.observer.until(['Block', 'no-sales', PRODUCER, 'Enforced', 'True/Enforced']);
    await send('namespace.0', world.publisher, 'bob');
    await kubectl(world.cluster, ['delete', 'namespace', PRODUCER, '--wait=false']);
    await kubectl(world.cluster, ['wait', '--for=delete', `namespace/${PRODUCER}`, '--timeout=120s']);
    expect(attempts('ada', 'namespace')).toEqual([]);
  });
});
