import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/deadline.ts';
import { kubectl, type Manifest } from '../support/world.ts';
import { type MistakesWorld, openMistakesWorld } from './world.ts';

let at: MistakesWorld;
beforeAll(async () => {
  at = await openMistakesWorld();
});
afterAll(() => at?.world.stop());

const SHOP = 'mine-shop';
const BUYER = 'mine-buyer';
const object = (kind: string, name: string, spec: object, namespace?: string) =>
  ({ apiVersion: 'sluice.dev/v1alpha1', kind, metadata: { name, ...(namespace && { namespace }) }, spec }) as Manifest;
const stream = (spec: object, name = 'wrong') => object('CatalogStream', name, { public: true, ...spec }, SHOP);
const subscription = (spec: object) =>
  object('Subscription', 'wrong', { producer: SHOP, integration: BUYER, stream: 'none', ...spec }, BUYER);
const endpoint = (more: object) => subscription({ endpoint: { url: 'https://partner.example/hook', ...more } });
const activation = (spec: object) =>
  object('Activation', 'wrong', { integration: BUYER, groupKey: 'a', ...spec }, SHOP);
const block = (spec: object) => object('Block', 'wrong', { integration: BUYER, ...spec }, SHOP);

test.each<[string, Manifest, RegExp]>([
  ['days', stream({ retention: '7d' }), /such as 5s, 30m or 168h.*not in days/],
  ['a number as a duration', stream({ retention: '60' }), /such as 5s, 30m or 168h/],
  ['half an hour', stream({ retention: '30m' }), /from 1h to 720h/],
  ['a year', stream({ retention: '8760h' }), /from 1h to 720h/],
  ['a misspelt field', stream({ retension: '24h' }), /\.spec\.retension: field not declared/],
  ['a word for a boolean', stream({ public: 'yes' }), /spec\.public.*boolean/],
  ['an invalid policy', stream({ deletionPolicy: 'Keep' }), /Retain/],
  ['a name with a dot', stream({}, 'orders.v1'), /without dots/],
  ['a name in capitals', stream({}, 'Orders'), /lower case/],
  ['credentials passed on', stream({ contextHeaders: { forward: ['Authorization'] } }), /forward/],
  ['a retry in words', endpoint({ retrySchedule: ['1 sec'] }), /such as 5s, 30m or 168h/],
  ['a retry in days', endpoint({ retrySchedule: ['5s', '1d'] }), /not in days/],
  ['ftp', endpoint({ url: 'ftp://partner.example/hook' }), /http/],
  ['a URL without a host', endpoint({ url: 'partner.example/hook' }), /http/],
  ['spec.groupkey', activation({ groupkey: 'a' }), /\.spec\.groupkey: field not declared/],
  ['a group key with spaces', activation({ groupKey: ' a ' }), /without leading or trailing spaces/],
  ['no group key', object('Activation', 'wrong', { integration: BUYER }, SHOP), /spec\.groupKey: Required/],
  ['a block of nothing', block({}), /spec\.target: Required/],
  ['a block of a subscription', block({ target: { kind: 'Subscription', name: 'a' } }), /CatalogStream/],
  ['an address without @', object('Integration', 'wrong', { invitedEmail: 'ada' }, SHOP), /such as ada@example\.com/],
  ['no partner', object('Integration', 'wrong', {}, SHOP), /must have invitedEmail .* or workspace/],
  ['a workspace without an account', object('Workspace', 'wrong', {}), /spec\.account: Required/],
  ['an invalid plan', object('Account', 'wrong', { owners: [], plan: 'Gold' }), /Metered/],
  ['an invalid kind', object('Stream', 'wrong', {}, SHOP), /no matches for kind "Stream"/],
])('%s: kubectl prints what to change, and nothing is changed', async (_what, manifest, words) => {
  const before = await at.state();
  const { cluster } = at.world.installation;
  const applied = kubectl(cluster, ['apply', '--server-side', '-f', '-'], JSON.stringify(manifest));
  await expect(applied).rejects.toThrow(words);
  expect(await at.state()).toBe(before);
});

const secret = (name: string, stringData: object) =>
  ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: SHOP },
    type: 'sluice.dev/ingress-key',
    stringData,
  }) as Manifest;

test.each<[string, Manifest, string, RegExp]>([
  ['short', secret('short', { key: 'abc' }), 'abc', /it has 3 bytes; use 20 or more/],
  [
    'field',
    secret('field', { token: 'a-key-in-the-wrong-field' }),
    'a-key-in-the-wrong-field',
    /not have a field "key" \(it has: token\)/,
  ],
  ['line', secret('line', { key: 'a-key-with-a-line-end\n' }), 'a-key-with-a-line-end', /Remove line breaks/],
])('an Event explains why an ingress key does not work (%s)', async (name, manifest, key, words) => {
  const { cluster } = at.world.installation;
  await kubectl(cluster, ['apply', '-f', '-'], JSON.stringify(manifest));
  const { value } = await eventually(`there is an Event on the Secret ${name}`, async () => {
    const events = await kubectl(cluster, [
      'get',
      'events',
      '-n',
      SHOP,
      `--field-selector=involvedObject.name=${name}`,
      '-o=jsonpath={.items[*].message}',
    ]);
    return events === '' ? undefined : events;
  });
  expect(value).toMatch(words);
  expect(value).not.toContain(key);
  const sent = await fetch(`${at.sluice.ingressUrl}/events/${at.specimens.ids['ten_']}/parcels`, {
    method: 'POST',
    headers: { 'x-api-key': key },
  });
  expect(sent.status).toBe(401);
});

test.each<[string, Manifest, RegExp]>([
  [
    'a second subscription',
    object('Subscription', 'second', { producer: SHOP, integration: BUYER, stream: 'parcels' }, BUYER),
    /an older Subscription \S+ exists for the same/,
  ],
  [
    'a subscription in the producer’s namespace',
    object('Subscription', 'astray', { producer: SHOP, integration: BUYER, stream: 'parcels' }, SHOP),
    /Check the namespace/,
  ],
])('%s: Ready says what to change', async (_what, manifest, words) => {
  const { cluster } = at.world.installation;
  const { name, namespace = '' } = manifest.metadata as { name: string; namespace?: string };
  await kubectl(cluster, ['apply', '-f', '-'], JSON.stringify(manifest));
  const path = '-o=jsonpath={.status.conditions[?(@.type=="Ready")].message}';
  const { value } = await eventually(
    `${name} has a status`,
    async () => (await kubectl(cluster, ['get', 'subscription', name, '-n', namespace, path])) || undefined,
  );
  expect(value).toMatch(words);
});
