import { beforeEach, describe, expect, test } from 'vitest';
import type { KindName } from '../../api/kinds/kinds.ts';
import type { Owner } from '../../api/owner.ts';
import { publicId } from '../../core/ids/ids.ts';
import { receivingWorkspaceName } from '../../core/ids/invitation-names.ts';
import { createStore, type Indexers } from '../../kube/store.ts';
import type { Identity } from '../auth/identity.ts';
import { INDEXES } from '../caches/indexes.ts';
import { PARTNER_INTEGRATION_ROUTES } from '../resources/subscriptions/partner-integrations.ts';
import { ACCOUNT_ROUTES } from '../resources/workspaces/accounts.ts';
import { WORKSPACE_ROUTES } from '../resources/workspaces/workspaces.ts';

const ISSUER = 'https://login.example';
const OTHERS = 1_000;
const owner = (fields: Partial<Owner>): Owner => ({ issuer: ISSUER, role: 'Owner', ...fields });
const account = (name: string, ...owners: Owner[]) => ({ metadata: { name }, spec: { owners, plan: 'Free' } });
const workspace = (name: string, pays: string, ...owners: Owner[]) => ({
  metadata: { name },
  spec: { account: pays, ...(owners.length === 0 ? {} : { owners }) },
});
const grant = (name: string, to: string) => ({ metadata: { name, namespace: 'shop' }, spec: { workspace: to } });

/** The workspaces that the caller's account received by accepting invitations. */
const accepted = receivingWorkspaceName('shop', 'accepted', 'by-subject');
const ended = receivingWorkspaceName('shop', 'ended', 'by-subject');
const GRANTS = [
  grant('accepted', accepted),
  { ...grant('ended', ended), spec: { workspace: ended, revoked: true } },
  grant('spam', 'a'),
  grant('more-spam', accepted),
];

const ada: Identity = {
  issuer: ISSUER,
  subject: 'ada',
  groups: ['staff', 'staff', 'guests'],
  client: 'portal',
  scopes: new Set(),
};
const eve: Identity = { issuer: ISSUER, subject: 'eve', groups: [], client: undefined, scopes: new Set() };

const ACCOUNTS = [
  account('by-client', owner({ client: 'portal', role: 'Viewer' })),
  account('by-group', owner({ group: 'staff', role: 'Admin' })),
  account('by-subject', owner({ subject: 'ada' }), owner({ group: 'staff' })),
  account('ending', owner({ subject: 'ada' })),
  account('of-another-issuer', owner({ subject: 'ada', issuer: 'https://other.example' })),
  account('of-nobody', owner({ subject: 'ada', group: 'staff' })),
];
const WORKSPACES = [
  workspace('a', 'by-subject'),
  workspace('b', 'by-subject', owner({ group: 'guests', role: 'Viewer' })),
  workspace('c', 'other-1', owner({ subject: 'ada', role: 'Admin' })),
  workspace('d', 'by-client'),
  workspace('e', 'other-2'),
  workspace('leaving', 'by-subject'),
  workspace(accepted, 'by-subject'),
  workspace(ended, 'by-subject'),
];

interface Named {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: object;
}

/** The caches of an installation with many other tenants, and the number of objects that were read from them. */
function open() {
  const stores: Partial<Record<KindName, ReturnType<typeof createStore<object>>>> = {};
  let visited = 0;
  const see = <T extends object>(objects: readonly T[]): readonly T[] => {
    visited += objects.length;
    return objects;
  };
  const fill = (kind: KindName, objects: readonly Named[]) => {
    const store = createStore<object>(INDEXES[kind] as unknown as Indexers<object>);
    for (const each of objects) store.set(each.metadata.name, each);
    stores[kind] = store;
  };
  const gone = { deletionTimestamp: '2026-01-01T00:00:00Z' };
  const leave = <T extends { metadata: { name: string } }>(each: T, name: string) =>
    each.metadata.name === name ? { ...each, metadata: { ...each.metadata, ...gone } } : each;
  const others = Array.from({ length: OTHERS }, (_, i) => i);
  fill('Account', [
    ...ACCOUNTS.map(each => leave(each, 'ending')),
    ...others.map(i => account(`other-${i}`, owner({ subject: `person-${i}` }))),
  ]);
  fill('Workspace', [
    ...WORKSPACES.map(each => leave(each, 'leaving')),
    ...others.map(i => workspace(`other-${i}`, `other-${i}`, owner({ subject: `helper-${i}` }))),
  ]);
  fill('Subscription', [
    { metadata: { name: 'mine', namespace: 'a' }, spec: { producer: 'shop', integration: 'to-a', stream: 'orders' } },
    // A subscription in another workspace is not this workspace's consent.
    { metadata: { name: 'his', namespace: 'e' }, spec: { producer: 'shop', integration: 'spam', stream: 'orders' } },
  ]);
  fill('Integration', [
    grant('to-a', 'a'),
    grant('to-e', 'e'),
    ...GRANTS,
    ...others.map(i => grant(`to-${i}`, `other-${i}`)),
  ]);
  const caches = {
    get: (kind: KindName, { name }: { name: string }) => {
      visited++;
      return stores[kind]?.get(name);
    },
    list: (kind: KindName, namespace: string) => see(stores[kind]?.byIndex('namespace', namespace) ?? []),
    by: (kind: KindName, index: string, value: string) => see(stores[kind]?.byIndex(index, value) ?? []),
  };
  return { facade: { caches, wallMs: () => 0 }, visited: () => visited };
}

let world = open();
beforeEach(() => {
  world = open();
});

async function list(operation: string, identity: Identity): Promise<Record<string, unknown>[]> {
  const routes = [...ACCOUNT_ROUTES, ...WORKSPACE_ROUTES, ...PARTNER_INTEGRATION_ROUTES];
  const route = routes.find(each => each.operation === operation);
  if (route === undefined) throw new Error(`no route is called ${operation}`);
  const { body } = await route.handle(world.facade as never, { identity, query: {} } as never);
  return (body as { data: Record<string, unknown>[] }).data;
}

describe('a list across workspaces contains the objects for which the caller has a role', () => {
  test('accounts that name the subject, a group, or the client', async () => {
    const found = (await list('listAccounts', ada)).map(({ name, role }) => `${name} ${role}`);
    expect(found).toEqual(['by-client Viewer', 'by-group Admin', 'by-subject Owner']);
  });

  test('workspaces that name the caller, or whose account does, each once', async () => {
    const found = (await list('listWorkspaces', ada)).map(({ name, role }) => `${name} ${role}`);
    expect(found.slice(0, 4)).toEqual(['a Owner', 'b Owner', 'c Admin', 'd Viewer']);
    expect(found.slice(4).toSorted()).toEqual([`${accepted} Owner`, `${ended} Owner`].toSorted());
  });

  test('integrations that these workspaces have accepted or subscribed to, and not those that only name a workspace', async () => {
    const found = (await list('listPartnerIntegrations', ada)).map(each => `${each['publicId']} ${each['status']}`);
    const wanted = ['to-a Active', 'accepted Active', 'ended Revoked'].map(each => {
      const [name = '', status] = each.split(' ');
      return `${publicId('Integration', 'shop', name)} ${status}`;
    });
    expect(found.toSorted()).toEqual(wanted.toSorted());
  });
});

test.each(['listAccounts', 'listWorkspaces', 'listPartnerIntegrations'])(
  '%s does not read objects of other tenants',
  async operation => {
    await list(operation, ada);
    const own = world.visited();
    expect(own).toBeGreaterThan(0);
    expect(own).toBeLessThan(3 * (ACCOUNTS.length + WORKSPACES.length));
    expect(await list(operation, eve)).toEqual([]);
    expect(world.visited()).toBe(own);
  },
);
