import { z } from 'zod';

/**
 * `metadata` fields read by Sluice. We leave them out of the CRDs because the API server already knows the schema of
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

/** `metadata` for namespaced kinds. */
export const NamespacedMeta = ObjectMeta.extend({ namespace: z.string() });
export type NamespacedMeta = z.infer<typeof NamespacedMeta>;
