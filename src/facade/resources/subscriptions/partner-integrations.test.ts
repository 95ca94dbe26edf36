import { expect, test } from 'vitest';
import { turnsOf } from '../../../../test/support/event-loop-turns.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { receivingWorkspaceName } from '../../../core/ids/invitation-names.ts';
import type { Route } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import { PARTNER_INTEGRATION_ROUTES } from './partner-integrations.ts';

const route = PARTNER_INTEGRATION_ROUTES.find(({ operation }) => operation === 'listPartnerIntegrations');
const RECEIVER = receivingWorkspaceName('shop', 'invited', 'ada');
const identity = { issuer: 'i', subject: 'ada', groups: [] };

function granted(namespace: string, name: string) {
  return { metadata: { namespace, name, uid: name }, spec: { workspace: RECEIVER } };
}

/** Lists the integrations of a receiving workspace to which these have been granted. */
function list(integrations: readonly object[], account = 'ada') {
  const workspace = {
    metadata: { name: RECEIVER },
    spec: { account, owners: [{ ...identity, role: 'Owner' }] },
  };
  const by = (kind: string) => (kind === 'Integration' ? integrations : kind === 'Workspace' ? [workspace] : []);
  const caches = { by, list: () => [], get: () => undefined };
  const call = { identity, query: {} } as unknown as Parameters<Route['handle']>[1];
  return route?.handle({ caches, wallMs: () => 0 } as unknown as Facade, call) as Promise<object>;
}

const pageWith = (...data: object[]) => ({ status: 200, body: { data, nextCursor: null } });
const invited = expect.objectContaining({ publicId: publicId('Integration', 'shop', 'invited'), status: 'Active' });

test('thousands of integrations that others granted to a workspace are told apart in slices, and only once', async () => {
  const others = Array.from({ length: 10_000 }, (_, n) => granted('spam', `int-${n}`));
  const integrations = [...others, granted('shop', 'invited')];
  const first = list(integrations);
  expect(await turnsOf(first)).toBeGreaterThan(2);
  expect(await first).toEqual(pageWith(invited));
  const second = list(integrations);
  expect(await turnsOf(second)).toBeLessThan(2);
  expect(await second).toEqual(pageWith(invited));
});

test('an integration that was accepted for another account is not listed', async () => {
  const integrations = [granted('shop', 'invited')];
  expect(await list(integrations)).toEqual(pageWith(invited));
  expect(await list(integrations, 'eve')).toEqual(pageWith());
});
