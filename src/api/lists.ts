import { z } from 'zod';

/**
 * A list of at most `max` items that belongs to one field manager as a whole: an apply replaces it, nothing is merged.
 */
export function atomicList<T extends z.ZodType>(item: T, limits: { min?: number; max: number }): z.ZodArray<T> {
  const list = z.array(item).max(limits.max).meta({ 'x-kubernetes-list-type': 'atomic' });
  return limits.min === undefined ? list : list.min(limits.min);
}

/** A list of at most `max` objects told apart by the field `key`, merged item by item by server-side apply. */
export function mapList<T extends z.ZodType>(item: T, key: string, limits: { max: number }): z.ZodArray<T> {
  return z
    .array(item)
    .max(limits.max)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] });
}
