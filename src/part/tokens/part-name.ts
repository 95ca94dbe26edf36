import type { Part } from '../keys.ts';

/** The name that a part has in its account. */
export function partName({ tenant, queue, gen, number }: Part): string {
  return `${tenant}:${queue}:${gen}:${number}`;
}

export function parsePartName(name: string): Part {
  const [tenant = '', queue = '', gen = '', number = ''] = name.split(':');
  return { tenant, queue, gen, number: Number(number) };
}
