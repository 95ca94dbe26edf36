import * as fc from 'fast-check';
import { pairsOf } from '../processes/controller.ts';
import type { System } from '../system.ts';
import { aDeath, anIntegration, aTenant, commandOf } from './command.ts';

const values = fc.record({ tenant: aTenant, integration: anIntegration, death: aDeath });
type Values = typeof values extends fc.Arbitrary<infer T> ? T : never;

async function changed(system: System, { tenant, integration, death }: Values): Promise<void> {
  await system.change(tenant, death, pairsOf(system.objects, tenant, integration));
}

const storedOf = ({ objects }: System, { tenant, integration }: Values) =>
  objects.get('Integration', `${tenant}/${integration}`);

export const invite = commandOf(values, value => ({
  text: `${value.tenant} invites ${value.integration}`,
  can: system => storedOf(system, value) === undefined,
  run: async system => {
    system.objects.apply('Integration', value.tenant, value.integration, { invitedEmail: 'somebody@example.org' });
    await changed(system, value);
  },
}));

/** Grants access, either by accepting an invitation or directly by the producer. */
export const grant = commandOf(values, value => ({
  text: `${value.integration} of ${value.tenant} is granted a workspace`,
  run: async system => {
    const stored = storedOf(system, value);
    const spec = { ...stored?.spec, workspace: `${value.tenant}-partner` };
    system.objects.apply('Integration', value.tenant, value.integration, spec);
    await changed(system, value);
  },
}));

export const endIntegration = commandOf(fc.tuple(values, fc.boolean()), ([value, declined]) => ({
  text: declined ? `${value.integration} declines ${value.tenant}` : `${value.tenant} revokes ${value.integration}`,
  run: async system => {
    const stored = storedOf(system, value);
    if (stored === undefined) return system.say(': there is none');
    const spec = { ...stored.spec, ...(declined ? { declined: true } : { revoked: true }) };
    system.objects.apply('Integration', value.tenant, value.integration, spec);
    await changed(system, value);
  },
}));

export const deleteIntegration = commandOf(values, value => ({
  text: `${value.tenant} deletes integration ${value.integration}`,
  run: async system => {
    if (storedOf(system, value) === undefined) return system.say(': there is none');
    system.objects.remove('Integration', `${value.tenant}/${value.integration}`);
    await changed(system, value);
  },
}));
