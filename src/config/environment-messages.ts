import type { z } from 'zod';

/** Returns what to change, for variables without their own message. */
export const messageOf: z.core.$ZodErrorMap = issue => {
  if (issue.code === 'invalid_type') return `must be a ${issue.format === 'safeint' ? 'whole ' : ''}number`;
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  if (issue.code === 'too_small') return `must be at least ${issue.minimum}`;
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}`;
  return undefined;
};
