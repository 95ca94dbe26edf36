import { expect, onTestFinished, test, vi } from 'vitest';
import { createClosers } from './closers.ts';

test('ends in the reverse order once, and continues if one of them throws', async () => {
  const silenced = vi.spyOn(console, 'error').mockImplementation(() => {});
  onTestFinished(() => silenced.mockRestore());
  const ended: string[] = [];
  const closers = createClosers();
  closers.add(async () => void ended.push('first'));
  closers.add(async () => {
    throw new Error('stuck');
  });
  closers.add(async () => void ended.push('last'));
  await Promise.all([closers.closeAll(), closers.closeAll()]);
  expect(ended).toEqual(['last', 'first']);
  expect(silenced).toHaveBeenCalledOnce();
});
