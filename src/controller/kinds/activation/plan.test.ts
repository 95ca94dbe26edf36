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
});
