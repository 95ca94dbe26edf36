import { expect, test } from 'vitest';
import { type GateFacts, judgeGate } from './gate-verdict.ts';

const open: GateFacts = { groupKey: 'k', integration: 'active', activated: true, subscription: 'open' };

test('an event is routed if everything is open', () => {
  expect(judgeGate(open)).toEqual({ wouldRoute: true, reason: undefined, held: false });
});

test.each<[string, Partial<GateFacts>, string, boolean]>([
  ['no group key', { groupKey: undefined }, 'missing_group_key', false],
  ['an empty group key', { groupKey: '' }, 'missing_group_key', false],
  ['an open invitation', { integration: 'pending', subscription: 'none' }, 'integration_pending', false],
  ['a revoked integration', { integration: 'closed', activated: false }, 'integration_closed', false],
  ['no subscription', { subscription: 'none', activated: false }, 'not_subscribed', false],
  ['no activation', { activated: false }, 'not_activated', false],
  ['no activation, while blocked', { activated: false, subscription: 'blocked_stream' }, 'not_activated', false],
  ['a block', { subscription: 'blocked_stream' }, 'blocked_stream', true],
  ['a suspended subscription', { subscription: 'suspended' }, 'suspended', true],
  ['too few tokens', { subscription: 'insufficient_tokens' }, 'insufficient_tokens', true],
  ['lost state, activations too', { subscription: 'state_missing', activated: false }, 'state_missing', true],
])('%s: not now', (_what, facts, reason, held) => {
  expect(judgeGate({ ...open, ...facts })).toEqual({ wouldRoute: false, reason, held });
});
