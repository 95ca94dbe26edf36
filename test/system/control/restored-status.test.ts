import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { SECRETS } from '../../../src/kube/resource.ts';
import { untilCalm } from '../support/calm.ts';
import { eventually } from '../support/deadline.ts';
import { type Listed, list } from '../support/listed.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { kubectl, read as readObject } from '../support/world.ts';

const world = useSmallWorld({ partners: ['ada'], groupKeys: ['key'] });

type Status = Record<string, unknown> & {
  conditions: { type: string; status: string; message: string; observedGeneration: number }[];
};

interface SigningSecret extends Listed {
  readonly metadata: Listed['metadata'] & { readonly ownerReferences?: readonly { readonly uid: string }[] };
  readonly data: { readonly secret: string };
}

interface Restored {
  readonly metadata: {
    readonly resourceVersion: string;
    readonly managedFields: readonly { readonly manager: string }[];
  };
  readonly status: Status;
}

/** @param object such as `catalogstream/orders` */
async function read(object: string, namespace: string): Promise<Restored> {
  const [kind = '', name = ''] = object.split('/');
  const found = await readObject<Restored>(world.cluster, kind, name, namespace);
  if (found === undefined) throw new Error(`there is no ${object}`);
  return found;
}
const patch = (object: string, namespace: string, status: object) =>
  kubectl(world.cluster, [
    'patch',
    object,
    '-n',
    namespace,
    '--subresource=status',
    '--field-manager=velero-server',
    '--type=merge',
    '-p',
    JSON.stringify({ status }),
  ]);

const condition = (type: string) => ({
  type,
  status: 'True',
  reason: 'Restored',
  message: 'from a backup',
  observedGeneration: 1,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});

const typesOf = ({ status }: { status: Status }) => status.conditions.map(({ type }) => type).toSorted();

test('conditions and fields of a restored status are removed, and conditions of others are kept', async () => {
  const object = `catalogstream/${QUEUE}`;
  const before = (await read(object, PRODUCER)).status;
  const conditions = [...before.conditions, condition('Stalled'), condition('Reconciling'), condition('Backup')];
  await patch(object, PRODUCER, { conditions });
  await eventually(
    'the conditions are removed',
    async () => typesOf(await read(object, PRODUCER)).join() === 'Backup,Published,Ready',
    { withinMs: 20_000 },
  );
  const after = (await read(object, PRODUCER)).status;
  expect(after.conditions.filter(({ type }) => type !== 'Backup')).toEqual(before.conditions);

  const subscription = `subscription/${SUBSCRIPTION}`;
  await patch(subscription, 'ada', {
    endpoint: { disabledAt: '2026-01-01T00:00:00.000Z', disabledBy: 'Gone' },
    conditions: [...(await read(subscription, 'ada')).status.conditions, condition('BacklogAtRisk')],
  });
  await world.observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'False/EndpointDisabled']);
  const enabled = { spec: { endpoint: { enabledAt: new Date().toISOString() } } };
  await kubectl(world.cluster, ['patch', subscription, '-n', 'ada', '--type=merge', '-p', JSON.stringify(enabled)]);
  await world.observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'True/Live']);
  await eventually('the endpoint is not shown', async () => !('endpoint' in (await read(subscription, 'ada')).status), {
    withinMs: 20_000,
  });
  // A condition of another manager does not cause any more writes.
  const version = async () => (await read(object, PRODUCER)).metadata.resourceVersion;
  await untilCalm(version);
  await kubectl(world.cluster, ['annotate', object, '-n', PRODUCER, 'a=b']);
  const annotated = await version();
  await delay(2_000);
  expect(await version()).toBe(annotated);
});

test('a Subscription that is restored with its status while the controller is stopped keeps its signing secret', async () => {
  const { cluster, observer, publisher, receiver, sluice } = world;
  const subscription = `subscription/${SUBSCRIPTION}`;
  const where = ['-n', 'ada'];
  const secret = async () => {
    const found = (await list<SigningSecret>(cluster, [SECRETS], 'ada')).find(
      ({ metadata }) => metadata.name === `${SUBSCRIPTION}-signing`,
    );
    return found && { data: found.data.secret, owner: found.metadata.ownerReferences?.map(({ uid }) => uid).join(' ') };
  };
  const before = await secret();
  const { status } = await read(subscription, 'ada');
  const { apiVersion, kind, spec } = JSON.parse(await kubectl(cluster, ['get', subscription, ...where, '-o', 'json']));
  await sluice.kill();
  await kubectl(cluster, ['patch', subscription, ...where, '--type=merge', '-p', '{"metadata":{"finalizers":null}}']);
  // There is no garbage collector that deletes the Secret along with its owner.
  await kubectl(cluster, ['delete', subscription, `secret/${SUBSCRIPTION}-signing`, ...where]);
  const restored = { apiVersion, kind, metadata: { name: SUBSCRIPTION }, spec };
  await kubectl(cluster, ['create', ...where, '-f', '-'], JSON.stringify(restored));
  await patch(subscription, 'ada', status);
  await sluice.restart();
  const { value: after } = await eventually('the Secret is written', secret);
  expect(after.data).toBe(before?.data);
  expect(after.owner).not.toBe(before?.owner);
  await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'True/Live']);
  await publisher.publish(makeSample('restored', 'key', 'restored'));
  await receiver.arrival('restored', 'ada');
});
