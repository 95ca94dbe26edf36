import { expect, test } from 'vitest';
import type { KindName } from '../../../api/kinds/kinds.ts';
import { hashInvitationToken } from '../../../core/ids/invitation.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { ObjectName } from '../../../kube/object.ts';
import type { Cached } from '../../caches/cached.ts';
import type { Route } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import type { Wanted } from '../../objects/resource-writer.ts';
import { acceptInvitation } from './invitation-acceptance.ts';
import { INVITATION_ROUTES } from './invitations.ts';

const TOKEN = `sinv_${'A'.repeat(43)}`;
const identity = {
  issuer: 'https://login.example.com',
  subject: 'ada',
  groups: [],
  client: undefined,
  scopes: new Set<string>(),
};

type Kept = Cached<KindName>;

/** An API server with one open invitation. `happens` runs right after the integration is read for the `nth` time. */
function openFacade(nth: number, meanwhile: Record<string, unknown>, requireInvitedEmail = false) {
  const invited = {
    metadata: { namespace: 'shop', name: 'int-1', uid: 'u', resourceVersion: '1' },
    spec: { invitedEmail: 'ada@example.com' },
    status: { invitation: { tokenHash: hashInvitationToken(TOKEN), expiresAt: '2099-01-01T00:00:00Z' } },
  };
  const kept = new Map<string, Kept>([['Integration/int-1', invited as Kept]]);
  const write = (key: string, spec: object) => {
    const before = kept.get(key);
    const resourceVersion = `${Number(before?.metadata.resourceVersion ?? '0') + 1}`;
    const metadata = before?.metadata ?? { name: key.slice(key.indexOf('/') + 1), uid: key, resourceVersion };
    const after = { ...before, metadata: { ...metadata, resourceVersion }, spec: { ...before?.spec, ...spec } } as Kept;
    kept.set(key, after);
    return after;
  };
  let reads = 0;
  const facade = {
    wallMs: () => Date.parse('2026-05-01T00:00:00Z'),
    caches: {
      get: () => undefined,
      findBy: async () => invited,
      live: async (kind: KindName, { name }: ObjectName) => {
        const read = kept.get(`${kind}/${name}`);
        if (kind === 'Integration' && ++reads === nth) write('Integration/int-1', meanwhile);
        return read;
      },
    },
    writer: {
      apply: async (kind: KindName, { name }: ObjectName, { before, exactly, spec }: Wanted<KindName>) => {
        const key = `${kind}/${name}`;
        const changed = kept.get(key)?.metadata.resourceVersion !== before?.metadata.resourceVersion;
        if (exactly && changed) throw new Refusal('changed_meanwhile');
        return write(key, spec);
      },
      edit: async <T>(attempt: () => Promise<T>) =>
        attempt().catch((error: unknown) => {
          if (error instanceof Refusal && error.code === 'changed_meanwhile') return attempt();
          throw error;
        }),
      waitFor: async (_kind: KindName, object: Kept) => object,
    },
    ownership: { owns: async () => false },
    requireInvitedEmail,
  } as unknown as Facade;
  return { facade, spec: () => kept.get('Integration/int-1')?.spec as Record<string, unknown> };
}

const decline = INVITATION_ROUTES.find(({ operation }) => operation === 'declineInvitation');

test('does not decline an invitation that was accepted after it was read', async () => {
  const { facade, spec } = openFacade(1, { workspace: 'partner' });
  const call = { body: { token: TOKEN } } as Parameters<NonNullable<typeof decline>['handle']>[1];
  await expect(decline?.handle(facade, call)).rejects.toMatchObject({ code: 'invitation_used' });
  expect(spec()).toEqual({ invitedEmail: 'ada@example.com', workspace: 'partner' });
});

test.each([
  ['declined', { declined: true }],
  ['accepted by another', { workspace: 'partner' }],
  ['revoked', { revoked: true }],
])('does not accept an invitation that was %s after it was read', async (_what, meanwhile) => {
  for (const nth of [1, 2]) {
    const { facade, spec } = openFacade(nth, meanwhile);
    await expect(acceptInvitation(facade, identity, TOKEN, 'paying')).rejects.toMatchObject({
      code: 'invitation_used',
    });
    expect(spec()).toEqual({ invitedEmail: 'ada@example.com', ...meanwhile });
  }
});

test('accepts an invitation if only its status has changed', async () => {
  const { facade, spec } = openFacade(2, {});
  const { workspace } = await acceptInvitation(facade, identity, TOKEN, 'paying');
  expect(spec()).toEqual({ invitedEmail: 'ada@example.com', workspace });
});

test.each([
  ['ADA@Example.com', true, true],
  ['eve@example.com', true, false],
  [undefined, true, false],
  [undefined, false, true],
])('a caller with the verified address %s can answer if the address is required (%s): %s', async (...row) => {
  const [email, required, may] = row;
  const caller = { ...identity, email };
  const accepting = openFacade(0, {}, required);
  const accepted = acceptInvitation(accepting.facade, caller, TOKEN, 'paying');
  const declining = openFacade(0, {}, required);
  const call = { identity: caller, body: { token: TOKEN } } as unknown as Parameters<Route['handle']>[1];
  const declined = decline?.handle(declining.facade, call);
  if (may) {
    await Promise.all([accepted, declined]);
    expect([accepting.spec(), declining.spec()]).toMatchObject([{ workspace: expect.any(String) }, { declined: true }]);
    return;
  }
  await expect(accepted).rejects.toMatchObject({ code: 'invitation_email_mismatch' });
  await expect(declined).rejects.toMatchObject({ code: 'invitation_email_mismatch' });
  for (const { spec } of [accepting, declining]) expect(spec()).toEqual({ invitedEmail: 'ada@example.com' });
});

test.each([
  ['Owner', undefined],
  ['Admin', undefined],
  ['Viewer', 'insufficient_role'],
  [undefined, 'invitation_used'],
] as const)('a caller with the role %s in the receiving workspace repeats an acceptance', async (role, code) => {
  const { facade } = openFacade(1, { workspace: 'partner' });
  await facade.caches.live('Integration', { namespace: 'shop', name: 'int-1' });
  const partner = { metadata: { name: 'partner' }, spec: { account: 'paying' } };
  const live = async (kind: KindName, name: ObjectName) =>
    kind === 'Workspace' ? partner : facade.caches.live(kind, name);
  const caches = { ...facade.caches, live };
  const repeating = { ...facade, caches, ownership: { roleFor: async () => role } } as unknown as Facade;
  const accepted = acceptInvitation(repeating, identity, TOKEN, 'paying');
  if (code === undefined) expect(await accepted).toMatchObject({ workspace: 'partner', account: 'paying' });
  else await expect(accepted).rejects.toMatchObject({ code });
});
