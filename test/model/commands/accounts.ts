import * as fc from 'fast-check';
import { aDeath, commandOf } from './command.ts';

const FEW = fc.constantFrom(0, 1, 1, 2, 3, 6);
const aChange = fc.oneof(
  fc.record({
    account: fc.constant('small' as const),
    plan: fc.constantFrom('Free', 'Free', 'Free', 'Metered'),
    more: FEW,
  }),
  fc.record({ account: fc.constant('main' as const), plan: fc.constantFrom('Free', 'Metered', 'Metered'), more: FEW }),
);

/** Adds tokens to an account, or changes its plan. */
export const changeAccount = commandOf(fc.tuple(aChange, aDeath), ([{ account, plan, more }, death]) => ({
  text: `account ${account} is ${plan}, with ${more} more tokens than it has used`,
  run: system => system.changeAccount(account, plan as 'Free' | 'Metered', more, death),
}));
