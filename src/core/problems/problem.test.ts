import { expect, test } from 'vitest';
import { problem } from './problem.ts';
import { PROBLEMS } from './problems.ts';

test('a document contains its code in type and code, and the status of the table', () => {
  expect(problem('queue_full')).toEqual({
    type: '/problems/queue_full',
    title: PROBLEMS.queue_full.title,
    status: 429,
    detail: PROBLEMS.queue_full.remedy,
    code: 'queue_full',
  });
});

test('detail and errors of a request replace the general remedy; without errors, the field is missing', () => {
  const document = problem('invalid_context', 'Change it.', [{ header: 'ce-id', detail: 'is empty' }]);
  expect(document.detail).toBe('Change it.');
  expect(document.errors).toEqual([{ header: 'ce-id', detail: 'is empty' }]);
  expect(problem('invalid_context', undefined, [])).not.toHaveProperty('errors');
});

test.each(Object.entries(PROBLEMS))(
  '%s is a snake-case code with an error status and texts with the correct punctuation',
  (code, kind) => {
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect(kind.status).toBeGreaterThanOrEqual(400);
    expect(kind.status).toBeLessThan(600);
    expect(kind.title).not.toMatch(/\.$/);
    expect(kind.remedy).toMatch(/\.$/);
  },
);
