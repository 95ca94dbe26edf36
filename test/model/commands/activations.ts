import * as fc from 'fast-check';
import type { System } from '../system.ts';
import { aDeath, aGroupKey, anIntegration, aTenant, commandOf } from './command.ts';

/** Two managers may write about one pair: either of them can close it, and both are required to open it. */
const values = fc.record({
  tenant: aTenant,
  integration: anIntegration,
  groupKey: aGroupKey,
  hand: fc.constantFrom('rest', 'rest', 'git'),
  death: aDeath,
});
type Values = typeof values extends fc.Arbitrary<infer T> ? T : never;

const nameOf = ({ integration, groupKey, hand }: Values) => `${integration}-${groupKey}-${hand}`;

function setRevoked(value: Values, revoked: boolean, word: string) {
  const { tenant, integration, groupKey, hand, death } = value;
  return {
    text: `${tenant} ${word} ${groupKey} for ${integration} (${hand})`,
    run: async (system: System) => {
      system.objects.apply('Activation', tenant, nameOf(value), {
        integration,
        groupKey,
        ...(revoked ? { revoked } : {}),
      });
      await system.changePair(tenant, { integration, groupKey }, death);
    },
  };
}

export const activate = commandOf(values, value => setRevoked(value, false, 'activates'));
export const revoke = commandOf(values, value => setRevoked(value, true, 'revokes'));

export const deleteActivation = commandOf(values, value => ({
  text: `${value.tenant} deletes the activation of ${value.groupKey} for ${value.integration} (${value.hand})`,
  run: async system => {
    const key = `${value.tenant}/${nameOf(value)}`;
    if (system.objects.get('Activation', key) === undefined) return system.say(': there is none');
    system.objects.remove('Activation', key);
    await system.changePair(value.tenant, value, value.death);
  },
}));
