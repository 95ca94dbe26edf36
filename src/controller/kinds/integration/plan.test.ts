import { describe, expect, test } from 'vitest';
import { listConditions } from '../../../../test/support/controller/list-conditions.ts';
import type { IntegrationState } from '../../../core/routing/integration-state.ts';
import { planIntegration } from './plan.ts';

describe('integration', () => {
  const facts = {
    namespace: 'acme',
    name: 'globex',
    state: 'Active' as IntegrationState,
    accepted: false,
    workspace: 'globex' as string | undefined,
    subscribed: true,
    workspaceExists: true,
    invitation: { invitation: undefined, conditions: [], events: [] },
  };
  test.each<[Partial<typeof facts>, string[]]>([
    [{}, ['Ready=True/Active', 'Accepted=True/DirectGrant', 'Admitted=True/Subscribed']],
    [{ subscribed: false }, ['Ready=True/Active', 'Accepted=True/DirectGrant', 'Admitted=False/WorkspaceNotAdmitting']],
    [
      { accepted: true, subscribed: false },
      ['Ready=True/Active', 'Accepted=True/InvitationAccepted', 'Admitted=True/InvitationAccepted'],
    ],
    [{ state: 'Pending', workspace: undefined }, ['Ready=True/Pending', 'Accepted=False/Pending']],
    [{ state: 'Declined' }, ['Ready=True/Closed', 'Accepted=False/Declined']],
    [{ state: 'Expired' }, ['Ready=True/Closed', 'Accepted=False/Expired']],
    [{ state: 'Revoked' }, ['Ready=True/Closed', 'Accepted=False/Revoked']],
    [
      { workspaceExists: false },
      ['Ready=Unknown/WaitingForWorkspace', 'Reconciling=True/Progressing', 'Accepted=True/DirectGrant'],
    ],
  ])('%j', (change, expected) => {
    expect(listConditions(planIntegration({ ...facts, ...change }))).toEqual(expected);
  });

  test.each([
    ['Active', 'the routes are applied. The integration is active'],
    ['Declined', 'the routes are applied. The integration is declined'],
  ] as const)('the message of %s is a sentence', (state, message) => {
    expect(planIntegration({ ...facts, state }).conditions[0]?.message).toBe(message);
  });
});
