import * as fc from 'fast-check';
import type { System } from '../system.ts';
import { aDeath, anIntegration, aStream, aTenant, commandOf } from './command.ts';

/** A second object for the same pair is a duplicate until the first object is deleted. */
const values = fc.record({
  tenant: aTenant,
  integration: anIntegration,
  stream: aStream,
  second: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  death: aDeath,
});
type Values = typeof values extends fc.Arbitrary<infer T> ? T : never;

const nameOf = ({ integration, stream, second }: Values) => `${integration}-${stream}${second ? '-2' : ''}`;
const keyOf = (value: Values) => `${value.tenant}-partner/${nameOf(value)}`;
const storedOf = ({ objects }: System, value: Values) => objects.get('Subscription', keyOf(value));
const isThere = (system: System, value: Values) => storedOf(system, value)?.metadata.deletionTimestamp === undefined;

const aKind = fc.constantFrom('pushed', 'pushed', 'pushed', 'pulled', 'unordered');

export const subscribe = commandOf(fc.tuple(values, aKind), ([value, kind]) => ({
  text: `${value.tenant}-partner subscribes ${nameOf(value)}, ${kind}`,
  can: system => isThere(system, value),
  run: async system => {
    const stored = storedOf(system, value);
    const ordering = stored?.spec.ordering ?? (kind === 'unordered' ? 'None' : 'ByGroupKey');
    const { tenant, integration, stream } = value;
    const spec = {
      producer: tenant,
      integration,
      stream,
      ordering,
      deletionPolicy: stored?.spec.deletionPolicy ?? ('Retain' as const),
      ...(stored?.spec.suspended === true ? { suspended: true } : {}),
      ...(kind === 'pulled' ? {} : { endpoint: { url: `https://${integration}.example.org/` } }),
    };
    system.objects.apply('Subscription', `${tenant}-partner`, nameOf(value), spec);
    await system.change(tenant, value.death);
  },
}));

export const suspend = commandOf(fc.tuple(values, fc.boolean()), ([value, suspended]) => ({
  text: `${value.tenant}-partner ${suspended ? 'suspends' : 'goes on with'} ${nameOf(value)}`,
  can: system => isThere(system, value),
  run: async system => {
    const stored = storedOf(system, value);
    if (stored === undefined) return system.say(': there is none');
    system.objects.apply('Subscription', `${value.tenant}-partner`, nameOf(value), { ...stored.spec, suspended });
    await system.change(value.tenant, value.death);
  },
}));

/** Enables the endpoint again. Its earlier responses are ignored. */
export const enable = commandOf(values, value => ({
  text: `${value.tenant}-partner enables the endpoint of ${nameOf(value)}`,
  can: system => isThere(system, value),
  run: async system => {
    const stored = storedOf(system, value);
    if (stored?.spec.endpoint === undefined) return system.say(': there is none');
    system.enable(`${value.tenant}-partner`, nameOf(value));
    await system.change(value.tenant, value.death);
  },
}));

export const unsubscribe = commandOf(fc.tuple(values, fc.boolean()), ([value, atOnce]) => ({
  text: `${value.tenant}-partner deletes ${nameOf(value)}${atOnce ? ' with its inbox' : ''}`,
  can: system => isThere(system, value),
  run: async system => {
    const stored = storedOf(system, value);
    if (stored === undefined) return system.say(': there is none');
    const deletionPolicy = atOnce ? ('Delete' as const) : ('Retain' as const);
    system.objects.apply('Subscription', `${value.tenant}-partner`, nameOf(value), { ...stored.spec, deletionPolicy });
    const receiver = system.tenantOf(value.tenant).receivers.get(stored.metadata.uid);
    if (atOnce && receiver !== undefined) receiver.leaving = true;
    system.objects.markDeleting('Subscription', keyOf(value));
    await system.change(value.tenant, value.death);
  },
}));
