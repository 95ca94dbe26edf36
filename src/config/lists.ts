import { z } from 'zod';

/** Parses a list that is separated by commas. Spaces around the items, and empty items, are dropped. */
export const list = z.string().transform(text =>
  text
    .split(',')
    .map(each => each.trim())
    .filter(each => each !== ''),
);
