import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PAUSED_ANNOTATION, SIGNING_SECRET_TYPE, WORKSPACE_LABEL } from '../../../src/api/well-known.ts';
import { EVE, type Intrusion, KEY, NORTH, openIntrusion, type Said } from '../delivery/intrusion.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import { feedOf, INTEGRATION, ingressSecret, keyOf, secret } from '../support/twins.ts';
import {
  activation,
  activationName,
  block,
  integration,
  kubectl,
  type Manifest,
  stream,
  tenant,
} from '../support/world.ts';

let world: Intrusion;

beforeAll(async () => {
  world = await openIntrusion();
});

afterAll(() => world?.close());

describe('keys, Secrets, labels, annotations and accounts', () => {
  const workspace = (spec: object, metadata: object = {}) => {
    const made = tenant('eve')[2] as Manifest;
    return world.observer.apply({
      ...made,
      metadata: { ...made.metadata, ...metadata },
      spec: { account: 'eve', ...spec },
    });
  };
  const ready: Said = ['Workspace', 'eve', undefined, 'Ready', 'True/NamespaceReady'];
  const label = (value: string) =>
    kubectl(world.installed.cluster, ['label', 'namespace', 'eve', '--overwrite', `${WORKSPACE_LABEL}=${value}`]);
  const sha256 = createHash('sha256').update(keyOf(NORTH)).digest('hex');
  const stolen = () => makeSample('stolen', KEY, 'x');

  it("a copy of the hash of north's key works for eve's own ingress, and does not affect north", async () => {
    for (const expiresAt of ['2020-01-01T00:00:00Z', '2099-01-01T00:00:00Z']) {
      await world.expectUntouched(() => workspace({ ingressKeys: [{ id: 'copy', sha256, expiresAt }] }), [ready]);
    }
    const isAccepted = async () => (await world.eve.post(stolen(), { key: keyOf(NORTH) })).status === 202;
    await eventually('the key works', isAccepted);
    expect((await world.north.post(stolen(), { key: keyOf(EVE) })).status).toBe(401);
    await world.expectUntouched(() => workspace({}), [ready]);
    await world.expectUntouched(() => world.put(ingressSecret('eve', 'copy', keyOf(NORTH))));
    await world.expectUntouched(() => kubectl(world.installed.cluster, ['delete', 'secret', 'copy', '-n', 'eve']));
    expect((await world.north.post(stolen(), { key: keyOf(EVE) })).status).toBe(401);
  });

  it("a Secret that claims to be the mirror of anna's does not change anything", async () => {
    const { cluster } = world.installed;
    const uid = await kubectl(cluster, [
      'get',
      'wsub',
      feedOf('orders'),
      '-n',
      'anna',
      '-o',
      'jsonpath={.metadata.uid}',
    ]);
    const owner = (name: string) => ({
      ownerReferences: [{ apiVersion: 'sluice.dev/v1alpha1', kind: 'Subscription', name, uid }],
    });
    await world.expectUntouched(() =>
      world.put(
        secret('eve', 'mirror', SIGNING_SECRET_TYPE, { secret: 'whsec_x' }, owner(feedOf('orders'))),
        secret(
          'eve',
          'mirror-by-path',
          SIGNING_SECRET_TYPE,
          { secret: 'whsec_x' },
          owner(`../anna/${feedOf('orders')}`),
        ),
      ),
    );
  });

  it('a namespace that claims to belong to north does not provide its objects to anyone', async () => {
    await world.expectUntouched(
      () =>
        world.put(
          { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'squat', labels: { [WORKSPACE_LABEL]: 'north' } } },
          stream('squat', 'orders', { eventTypes: ['none'] }),
          integration('squat', INTEGRATION, { workspace: 'eve' }),
          activation('squat', INTEGRATION, KEY, { revoked: true }),
          block('squat', 'all', { integration: INTEGRATION, target: { kind: 'CatalogStream', name: 'orders' } }),
          ingressSecret('squat', 'ingress', keyOf(EVE)),
        ),
      [['CatalogStream', 'orders', 'squat', 'Ready', 'Unknown/WaitingForWorkspace']],
    );
    expect((await world.north.post(stolen(), { key: keyOf(EVE) })).status).toBe(401);
    await world.expectUntouched(
      () => label('north'),
      [['Workspace', 'eve', undefined, 'Ready', 'False/NamespaceNotAdopted']],
    );
    await world.expectUntouched(() => label('eve'), [ready]);
  });

  it('a Workspace only adopts its own namespace, and its account is charged', async () => {
    await world.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'plain' } });
    const named = (name: string, account: string) => ({ ...(tenant(name)[2] as Manifest), spec: { account } });
    await world.expectUntouched(
      () => world.put(named('plain', 'eve'), named('mallory', 'north')),
      [
        ['Workspace', 'plain', undefined, 'Ready', 'False/NamespaceNotAdopted'],
        ['Workspace', 'mallory', undefined, 'Ready', 'True/NamespaceReady'],
      ],
    );
  });

  it('pausing only affects the annotated workspace', async () => {
    await world.expectUntouched(() => workspace({}, { annotations: { [PAUSED_ANNOTATION]: 'true' } }));
    let count = 0;
    const isPaused = async () => {
      const groupKey = `meanwhile-${count++}`;
      await world.observer.apply(activation('eve', INTEGRATION, groupKey));
      const name = activationName(INTEGRATION, groupKey);
      const judged = async () => (await world.observer.conditionOf('Activation', name, 'eve')) || undefined;
      const { value } = await eventually('the activation is reconciled', judged);
      return value === 'Unknown/WorkspacePaused';
    };
    await eventually('the controller knows the pause', isPaused);
    await world.expectUntouched(() => workspace({}), [ready]);
    const annotate = (...what: string[]) =>
      kubectl(world.installed.cluster, ['annotate', ...what, '-n', 'eve', `${PAUSED_ANNOTATION}=true`]);
    await world.expectUntouched(async () => {
      await annotate('namespace/eve');
      await annotate(`integration/${INTEGRATION}`);
      await annotate(`wsub/${feedOf('orders')}`);
    });
    await world.observer.apply(activation('eve', INTEGRATION, 'afterwards'));
    await world.observer.until([
      'Activation',
      activationName(INTEGRATION, 'afterwards'),
      'eve',
      'Ready',
      'True/GateOpen',
    ]);
  });

  it('an account without tokens only holds back its own workspaces', async () => {
    const account = (spec: object) => world.observer.apply(tenant('eve', spec)[1] as Manifest);
    await world.expectUntouched(async () => {
      await account({ plan: 'Free', includedTokens: 0 });
      await world.idle();
      expect((await world.eve.post(makeSample('unpaid', KEY, 'x'))).status).toBe(202);
    }, [['Workspace', 'eve', undefined, 'InsufficientTokens', 'True/TokensSpent']]);
    await world.expectUntouched(
      () => account({ plan: 'Metered' }),
      [['Workspace', 'eve', undefined, 'InsufficientTokens', 'False/TokensLeft']],
    );
  });

  it('deleting a stream only deletes events of eve', async () => {
    await world.expectUntouched(async () => {
      await world.put(stream('eve', 'orders', { deletionPolicy: 'Delete' }));
      await world.observer.remove('CatalogStream', 'orders', 'eve');
      await world.observer.untilGone(['CatalogStream', 'orders', 'eve']);
    });
    expect(world.receiver.attempts.filter(({ subscription: at }) => at === 'stolen')).toEqual([]);
  });
});
