import { z } from 'zod';
import { mapList } from './lists.ts';
import { text, timestamp } from './strings.ts';

/** One condition, in the shape of Kubernetes' `metav1.Condition`. */
export const Condition = z
  .object({
    type: z
      .string()
      .min(1)
      .max(63)
      .regex(/^[A-Z][A-Za-z0-9]*$/)
      .describe('Type of the condition, in CamelCase, for example Ready. Unique in the list.'),
    status: z.enum(['True', 'False', 'Unknown']).describe('Whether the condition holds. Unknown: not known yet.'),
    reason: z
      .string()
      .min(1)
      .max(63)
      .regex(/^[A-Z][A-Za-z0-9]*$/)
      .describe('Reason for the status, one CamelCase word that programs can rely on.'),
    message: text({ max: 1024 }).describe('Explanation for people. May change between releases.'),
    observedGeneration: z
      .int()
      .min(0)
      .meta({ format: 'int64' })
      .describe('metadata.generation that the condition is based on.'),
    lastTransitionTime: timestamp().describe(
      'When status last changed (RFC 3339). A new reason alone does not change it.',
    ),
  })
  .describe('One condition of the object, in the shape of metav1.Condition.');
export type Condition = z.infer<typeof Condition>;

/** Status fields that every kind has. */
export const statusFields = {
  publicId: z
    .string()
    .max(64)
    .describe(
      'Public id in REST: a prefix and 20 characters of base32. Derived from kind, namespace and name, so a manifest has the same id in every cluster.',
    )
    .optional(),
  observedGeneration: z
    .int()
    .min(0)
    .meta({ format: 'int64' })
    .describe('Latest metadata.generation that the controller has reconciled.')
    .optional(),
  conditions: mapList(Condition, 'type', { max: 12 })
    .describe(
      'Current conditions of the object. Ready is always present; Reconciling and Stalled only while True (kstatus).',
    )
    .optional(),
};
