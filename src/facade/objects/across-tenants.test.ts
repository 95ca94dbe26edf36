import { describe, expect, test } from 'vitest';
import type { ProblemCode } from '../../core/problems/problems.ts';
import { Refusal } from '../../http/refusal.ts';
import { fieldManaged } from '../caches/kube-failures.ts';
import { acrossTenants } from './across-tenants.ts';

const answerOf = (error: unknown) => acrossTenants(() => Promise.reject(error)).catch((refused: unknown) => refused);

describe('a change to an object of another tenant', () => {
  test.each<[ProblemCode, Refusal]>([
    [
      'field_managed',
      fieldManaged([{ pointer: '/spec/workspace', detail: 'spec.workspace is managed by acme-gitops' }]),
    ],
    ['refused_by_policy', new Refusal('refused_by_policy', 'ValidatingAdmissionPolicy acme-gitops denied it')],
    ['not_reconcilable', new Refusal('not_reconcilable', 'NameTaken: acme-gitops has the same name')],
    ['not_in_force', new Refusal('not_in_force', 'not in force (Ready is False: acme-gitops)')],
  ])('is refused as %s without what the object contains', async (code, refusal) => {
    expect(JSON.stringify(refusal.facts)).toContain('acme-gitops');
    const refused = (await answerOf(refusal)) as Refusal;
    expect(refused.code).toBe(code);
    expect(JSON.stringify(refused.facts)).not.toContain('acme-gitops');
    expect(refused.facts.detail).toMatch(/\w/);
  });

  test('that makes the object invalid does not quote its content', async () => {
    const errors = [{ pointer: '/spec/invitedEmail', detail: 'Invalid value: "ada@acme-gitops.example"' }];
    const refused = (await answerOf(new Refusal('invalid_request', { errors }))) as Refusal;
    expect(refused.code).toBe('refused_by_policy');
    expect(JSON.stringify(refused.facts)).not.toContain('acme-gitops');
    expect(refused.facts.errors).toBeUndefined();
  });

  test('keeps other problems and errors', async () => {
    for (const error of [new Refusal('invitation_used', 'for another account'), new Error('a defect')]) {
      expect(await answerOf(error)).toBe(error);
    }
    expect(await acrossTenants(async () => 'done')).toBe('done');
  });
});
