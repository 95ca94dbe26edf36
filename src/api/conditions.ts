import { z } from 'zod';
import { mapList } from './lists.ts';
import { text, timestamp } from './strings.ts';

/** One condition, as Kubernetes' own `metav1.Condition`. */
export const Condition = z
  .object({
    type: z
      .string()
      .min(1)
      .max(63)
      .regex(/^[A-Z][A-Za-z0-9]*$/)
      .describe('What is said, in CamelCase, for example Ready. Once in the list.'),
    status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds; Unknown while it cannot be told yet.'),
    reason: z
      .string()
      .min(1)
      .max(63)
      .regex(/^[A-Z][A-Za-z0-9]*$/)
      .describe('Why, as one CamelCase word that programs can rely on.'),
    message: text({ max: 1024 }).describe('Why, for people. May change from release to release.'),
    observedGeneration: z
      .int()
      .min(0)
      .meta({ format: 'int64' })
      .describe('The metadata.generation that this was judged from.'),
    lastTransitionTime: timestamp().describe(
      'When status last changed (RFC 3339). A new reason alone does not move it.',
    ),
  })
  .describe('One statement about the object, as metav1.Condition.');
export type Condition = z.infer<typeof Condition>;

export type ConditionStatus = Condition['status'];

/** What every kind's status holds beside its own fields. */
export const statusFields = {
  publicId: z
    .string()
    .max(64)
    .describe(
      'Public id of the REST interface: a prefix and 20 characters of base32. Derived from kind, namespace and name, so the same manifest has the same id in every cluster.',
    )
    .optional(),
  observedGeneration: z
    .int()
    .min(0)
    .meta({ format: 'int64' })
    .describe('The newest metadata.generation that the controller has worked on.')
    .optional(),
  conditions: mapList(Condition, 'type', { max: 12 })
    .describe(
      'What is true of the object now. Ready is always there; Reconciling and Stalled only while True (kstatus).',
    )
    .optional(),
};
