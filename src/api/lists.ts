import { z } from 'zod';

/**
 * Returns the schema for a list of at most `max` items. The list is atomic, meaning that an apply replaces all of its
 * items.
 */
export function atomicList<T extends z.ZodType>(item: T, limits: { min?: number; max: number }): z.ZodArray<T> {
  const list = z.array(item).max(limits.max).meta({ 'x-kubernetes-list-type': 'atomic' });
  return limits.min === undefined ? list : list.min(limits.min);
}

/** Returns the schema for a list of at most `max` objects, which server-side apply merges by `key`. */
export function mapList<T extends z.ZodType>(item: T, key: string, limits: { max: number }): z.ZodArray<T> {
  return z
    .array(item)
    .max(limits.max)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] });
}
