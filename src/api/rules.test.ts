import { expect, it } from 'vitest';
import { z } from 'zod';
import { immutable, withRule, withTransitions } from './rules.ts';

const rule = { rule: 'self.a != self.b', message: 'a and b must differ' };

it('checks a rule in zod and adds it as CEL after existing rules', () => {
  const once = withTransitions(z.object({ a: z.string(), b: z.string() }), immutable('a'));
  const schema = withRule(once, { ...rule, holds: value => value.a !== value.b });

  expect(schema.safeParse({ a: 'x', b: 'y' }).success).toBe(true);
  expect(schema.safeParse({ a: 'x', b: 'x' }).error?.issues).toMatchObject([{ message: 'a and b must differ' }]);
  expect(schema.describe('Later.').meta()).toEqual({
    description: 'Later.',
    'x-kubernetes-validations': [{ rule: 'self.a == oldSelf.a', message: 'a is immutable', fieldPath: '.a' }, rule],
  });
});
