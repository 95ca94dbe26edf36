import { z } from 'zod';
import { mapList } from './lists.ts';
import { text, timestamp } from './strings.ts';

/** A condition, formatted like `metav1.Condition` in Kubernetes. */
export const Condition = z
  .object({
    type: z
      .string()
      .min(1)
      .max(63)
      .regex(/^[A-Z][A-Za-z0-9]*$/)
      .describe('The type of the condition in CamelCase, such as Ready. Each type is unique in the list.'),
    status: z
      .enum(['True', 'False', 'Unknown'])
      .describe('The status of the condition, one of True, False or Unknown.'),
    reason: z
      .string()
      .min(1)
      .max(63)
      .regex(/^[A-Z][A-Za-z0-9]*$/)
      .describe(
        'The reason for the current status, as a single word in CamelCase. You can use this value in programs.',
      ),
    message: text({ max: 1024 }).describe(
      'A human-readable explanation of the reason. The text can change between releases.',
    ),
    observedGeneration: z
      .int()
      .min(0)
      .meta({ format: 'int64' })
      .describe('The metadata.generation that the condition applies to.'),
    lastTransitionTime: timestamp().describe(
      'The time (RFC 3339) of the last change of status. A change of the reason does not update this field.',
    ),
  })
  .describe('A condition of the object in the format of metav1.Condition.');
export type Condition = z.infer<typeof Condition>;

/** Status fields common to all kinds. */
export const statusFields = {
  publicId: z
    .string()
    .max(64)
    .describe(
      'The public id of the object in the REST API. It consists of a prefix and 20 base32 characters. The id is derived from the kind, the namespace and the name, so it is the same in every cluster.',
    )
    .optional(),
  observedGeneration: z
    .int()
    .min(0)
    .meta({ format: 'int64' })
    .describe('The latest metadata.generation that the controller has reconciled.')
    .optional(),
  conditions: mapList(Condition, 'type', { max: 12 })
    .describe(
      'The current conditions of the object. Ready is always present. Reconciling and Stalled are only present if they are True (kstatus).',
    )
    .optional(),
};
