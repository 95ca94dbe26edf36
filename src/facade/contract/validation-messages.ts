import type { z } from 'zod';
import { nearestName } from '../../core/problems/nearest-name.ts';

/** The name of each type of zod for the caller of an HTTP API. */
const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'has to be a string, in double quotes',
  number: 'has to be a number, without quotes',
  int: 'has to be a whole number, without quotes',
  boolean: 'has to be true or false, without quotes',
  array: 'has to be a list: [ … ]',
  object: 'has to be an object: { … }',
  record: 'has to be an object: { … }',
  null: 'has to be null',
};
const REQUIRED = 'is required';
/** An answer lists this many names; longer lists are in the reference. */
const MOST_NAMED = 20;

/** Says what to change, in the words of a caller. Schemas with a message of their own keep it. */
export const messageOf: z.core.$ZodErrorMap = issue => {
  if (issue.input === undefined) return REQUIRED;
  switch (issue.code) {
    case 'invalid_type':
      return TYPE_NAMES[issue.expected] ?? `has to be of type ${issue.expected}`;
    case 'invalid_value':
      return `has to be ${issue.values.length > 1 ? 'one of ' : ''}${listOf(issue.values.map(String))}`;
    case 'too_small':
      return `has to be at least ${amount(issue.origin, Number(issue.minimum))}`;
    case 'too_big':
      return `has to be at most ${amount(issue.origin, Number(issue.maximum))}`;
    case 'invalid_union':
      return 'has none of the forms that are taken here';
    default:
      return undefined;
  }
};

function amount(origin: string, count: number): string {
  const noun = origin === 'string' ? 'character' : origin === 'array' || origin === 'set' ? 'item' : undefined;
  const number = count.toLocaleString('en');
  return noun === undefined ? number : `${number} ${noun}${count === 1 ? '' : 's'} long`;
}

function listOf(names: readonly string[]): string {
  return `${names.slice(0, MOST_NAMED).join(', ')}${names.length > MOST_NAMED ? ', …' : ''}`;
}

/** Returns what is wrong with a field that is not there: its own message says what belongs there. */
export function messageOfMissing(message: string): string {
  return message === REQUIRED ? message : `${REQUIRED}; it ${message}`;
}

/** Returns what is wrong with a field or parameter `name` that is none of `known`. */
export function messageOfUnknown(sort: 'field' | 'parameter', name: string, known: readonly string[]): string {
  const meant = nearestName(name, known);
  if (meant !== undefined) return `is no ${sort} of this call; did you mean ${meant}?`;
  return known.length === 0 ? `is no ${sort} of this call` : `is no ${sort} of this call; known: ${listOf(known)}`;
}
