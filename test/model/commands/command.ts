import * as fc from 'fast-check';
import type { Death } from '../processes/process.ts';
import { NAMES } from '../state/tenant.ts';
import { type System, TENANTS, type TenantName } from '../system.ts';

export type ModelCommand = fc.AsyncCommand<System, System>;

/** The definition of a command. `can` returns whether it makes sense in the current state; otherwise, it is omitted. */
export interface CommandParts {
  /** The description of the command in the story. */
  readonly text: string;
  readonly can?: (system: System) => boolean;
  readonly run: (system: System) => Promise<unknown>;
}

/** The time between two commands, in whole seconds, like the timestamps in statuses. */
const tickMs = fc.constantFrom(0, 0, 1_000, 1_000, 3_000, 6_000, 11_000, 30_000);

/** Creates commands from the values of the arbitrary. */
export function commandOf<T>(values: fc.Arbitrary<T>, make: (value: T) => CommandParts): fc.Arbitrary<ModelCommand> {
  return fc.tuple(values, tickMs).map(([value, tick]) => {
    const { text, can, run } = make(value);
    const line = tick === 0 ? text : `${tick / 1_000} s later, ${text}`;
    return {
      check: system => can?.(system as System) ?? true,
      run: async system => {
        // The start of an activation depends on events, or on the milliseconds if it has to be determined.
        system.clock.ms += Math.max(1, tick);
        await system.step(line, () => run(system));
      },
      toString: () => line,
    };
  });
}

export const aTenant: fc.Arbitrary<TenantName> = fc.constantFrom(...TENANTS, TENANTS[0]);
export const aStream = fc.constantFrom(...NAMES.streams, NAMES.streams[0]);
export const aPackage = fc.constantFrom(...NAMES.packages);
export const anIntegration = fc.constantFrom(...NAMES.integrations, NAMES.integrations[0]);
export const aGroupKey = fc.constantFrom(...NAMES.groupKeys, NAMES.groupKeys[0]);

const someDeath = fc.record({ call: fc.integer({ min: 1, max: 30 }), sent: fc.boolean() });

/** In most cases, there are none. */
export const aDeath: fc.Arbitrary<Death | undefined> = fc.option(someDeath, { nil: undefined, freq: 6 });
