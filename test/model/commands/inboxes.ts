import * as fc from 'fast-check';
import { aTenant, commandOf } from './command.ts';

const values = fc.record({ tenant: aTenant, which: fc.nat(100) });

export const skip = commandOf(values, ({ tenant, which }) => ({
  text: `${tenant}-partner skips`,
  run: system => system.partner.finish(tenant, which, 'skipped'),
}));

export const acknowledge = commandOf(values, ({ tenant, which }) => ({
  text: `${tenant}-partner acknowledges`,
  run: system => system.partner.finish(tenant, which, 'delivered'),
}));
