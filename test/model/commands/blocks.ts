import * as fc from 'fast-check';
import { aDeath, anIntegration, aPackage, aStream, aTenant, commandOf } from './command.ts';

const aTarget = fc.oneof(
  fc.record({ kind: fc.constant('CatalogStream' as const), name: aStream }),
  fc.record({ kind: fc.constant('Package' as const), name: aPackage }),
);
const values = fc.record({ tenant: aTenant, integration: anIntegration, target: aTarget, death: aDeath });
const word = { CatalogStream: 'stream', Package: 'package' } as const;

/** Blocks may be created before the integration, the target, or a subscription exists. */
export const block = commandOf(fc.tuple(values, fc.boolean()), ([{ tenant, integration, target, death }, skip]) => ({
  text: `${tenant} blocks ${word[target.kind]} ${target.name} for ${integration}${skip ? ', to skip what comes' : ''}`,
  run: async system => {
    const onUnblock = skip ? 'SkipToNow' : 'Continue';
    const name = `${integration}-${word[target.kind]}-${target.name}`;
    system.objects.apply('Block', tenant, name, { integration, target, onUnblock });
    await system.change(tenant, death);
  },
}));

export const unblock = commandOf(values, ({ tenant, integration, target, death }) => ({
  text: `${tenant} unblocks ${word[target.kind]} ${target.name} for ${integration}`,
  run: async system => {
    const key = `${tenant}/${integration}-${word[target.kind]}-${target.name}`;
    if (system.objects.get('Block', key) === undefined) return system.say(': there is no block');
    system.objects.remove('Block', key);
    await system.change(tenant, death);
  },
}));
