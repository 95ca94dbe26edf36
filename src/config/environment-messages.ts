import type { z } from 'zod';

/** Returns what to change, for variables without their own message. */
export const messageOf: z.core.$ZodErrorMap = issue => {
  if (issue.code === 'invalid_type') return `has to be a ${issue.format === 'safeint' ? 'whole ' : ''}number`;
  if (issue.code === 'invalid_value') return `has to be one of ${issue.values.join(', ')}`;
  if (issue.code === 'too_small') return `has to be at least ${issue.minimum}`;
  if (issue.code === 'too_big') return `has to be at most ${issue.maximum}`;
  return undefined;
};
