import { z } from 'zod';

/** A list separated by commas. Spaces around the items, and empty items, are dropped. */
export const list = z.string().transform(text =>
  text
    .split(',')
    .map(each => each.trim())
    .filter(each => each !== ''),
);
