import { describe, expect, test } from 'vitest';
import { listConditions } from '../../../../test/support/controller/list-conditions.ts';
import type { IntegrationState } from '../../../core/routing/integration-state.ts';
import { planActivation } from './plan.ts';

describe('activation', () => {
  const facts = {
    namespace: 'acme',
    integration: 'globex',
    groupKey: 'k',
    revoked: false,
    open: true,
    workspaceExists: true,
    state: 'Active' as IntegrationState,
  };
  test.each<
    [{ state?: IntegrationState | undefined; revoked?: boolean; open?: boolean; workspaceExists?: boolean }, string[]]
  >([
    [{ workspaceExists: false }, ['Ready=Unknown/WaitingForWorkspace', 'Reconciling=True/Progressing']],
    [{}, ['Ready=True/GateOpen', 'Effective=True/Routing']],
    [{ state: 'Pending' }, ['Ready=True/GateOpen', 'Effective=False/IntegrationPending']],
    [{ state: 'Declined' }, ['Ready=True/GateOpen', 'Effective=False/IntegrationClosed']],
    [{ revoked: true, open: false }, ['Ready=True/GateClosed', 'Effective=False/Revoked']],
    [{ open: false }, ['Ready=True/GateClosed', 'Effective=False/RevokedElsewhere']],
    [{ state: undefined, open: false }, ['Ready=Unknown/WaitingForIntegration', 'Reconciling=True/Progressing']],
  ])('%j', (change, expected) => {
    expect(listConditions(planActivation({ ...facts, ...change } as typeof facts))).toEqual(expected);
  });

  test.each([
    ['first', 'because Activation first for'],
    [undefined, 'because another Activation for'],
  ])('the message of a group key that %s closes states how to open it', (revokedBy, words) => {
    const message = planActivation({ ...facts, open: false, revokedBy }).conditions.at(-1)?.message;
    expect(message).toContain(words);
    expect(message).toContain('To open the group key, set revoked of that Activation to false or delete it');
  });

  test('the message for a missing integration contains the namespace, which may be wrong', () => {
    expect(planActivation({ ...facts, state: undefined }).conditions[0]?.message).toBe(
      'integration globex does not exist in namespace acme yet. Create it, or check spec.integration and the namespace',
    );
  });
});
