import { z } from 'zod';
import { mapList } from './lists.ts';
import { text, timestamp } from './strings.ts';

/** A condition of an object. The condition uses the same format as `metav1.Condition` in Kubernetes. */
export const Condition = z
  .object({
    type: z
      .string()
      .min(1)
      .max(63)
      .regex(/^[A-Z][A-Za-z0-9]*$/)
      .describe('Type of condition in CamelCase, e.g. Ready. It must be unique within the list.'),
    status: z
      .enum(['True', 'False', 'Unknown'])
      .describe('The status of the condition, one of True, False, or Unknown.'),
    reason: z
      .string()
      .min(1)
      .max(63)
      .regex(/^[A-Z][A-Za-z0-9]*$/)
      .describe('The machine-readable reason for the current status, as a single CamelCase word.'),
    message: text({ max: 1024 }).describe(
      'A human-readable explanation of the reason. This text may change between releases.',
    ),
    observedGeneration: z
      .int()
      .min(0)
      .meta({ format: 'int64' })
      .describe('The metadata.generation that this condition was set based upon.'),
    lastTransitionTime: timestamp().describe(
      'The time (RFC 3339) at which the status last changed. This field is not updated if only the reason has changed.',
    ),
  })
  .describe('A condition of the object, using the same format as metav1.Condition.');
export type Condition = z.infer<typeof Condition>;

/**
 * The status of an object that has not been reconciled. Without a status, kstatus would consider the object ready, and
 * `helm install --wait` would return too early.
 */
export const NEW_STATUS = { observedGeneration: -1 };

/** Status fields common to all kinds. */
export const statusFields = {
  publicId: z
    .string()
    .max(64)
    .describe(
      'The id of this object in the REST API: a prefix and 20 base32 characters, derived from the kind, namespace, and name. The same object has the same id in every cluster.',
    )
    .optional(),
  observedGeneration: z
    .int()
    .min(-1)
    .meta({ format: 'int64' })
    .describe('The most recent metadata.generation that the controller has reconciled, or -1 for a new object.')
    .optional(),
  conditions: mapList(Condition, 'type', { max: 12 })
    .describe(
      'A list of status conditions. Ready is always present. Reconciling and Stalled are only present if they are True (kstatus).',
    )
    .optional(),
};
