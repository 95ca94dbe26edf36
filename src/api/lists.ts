import { z } from 'zod';

/**
 * Returns the schema for a list with at most `max` items. The list is atomic, which means that applying it replaces all
 * items.
 */
export function atomicList<T extends z.ZodType>(item: T, limits: { min?: number; max: number }): z.ZodArray<T> {
  const list = z.array(item).max(limits.max).meta({ 'x-kubernetes-list-type': 'atomic' });
  return limits.min === undefined ? list : list.min(limits.min);
}

/** Returns the schema for a list with at most `max` objects. Server-side apply will use the `key` to merge them. */
export function mapList<T extends z.ZodType>(item: T, key: string, limits: { max: number }): z.ZodArray<T> {
  return z
    .array(item)
    .max(limits.max)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] });
}
