import { z } from 'zod';

/**
 * The fields of `metadata` that this project reads. The CRDs do not repeat them: the API server knows its own
 * metadata.
 */
export const ObjectMeta = z.object({
  name: z.string(),
  uid: z.string(),
  resourceVersion: z.string(),
  generation: z.number(),
  creationTimestamp: z.string(),
  deletionTimestamp: z.string().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
  finalizers: z.array(z.string()).optional(),
});
export type ObjectMeta = z.infer<typeof ObjectMeta>;

/** `metadata` of the kinds that live in a namespace. */
export const NamespacedMeta = ObjectMeta.extend({ namespace: z.string() });
export type NamespacedMeta = z.infer<typeof NamespacedMeta>;
