import type { z } from 'zod';
import { nearestName } from '../../core/problems/nearest-name.ts';

/** Messages for zod types. */
const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'must be a string, in double quotes',
  number: 'must be a number, without quotes',
  int: 'must be a whole number, without quotes',
  boolean: 'must be true or false, without quotes',
  array: 'must be a list: [ … ]',
  object: 'must be an object: { … }',
  record: 'must be an object: { … }',
  null: 'must be null',
};
const REQUIRED = 'is required';
/** The maximum number of names in a message. For longer lists, see the reference. */
const MOST_NAMED = 20;

/** Returns the message to use for an issue. Messages set in the schema take precedence. */
export const messageOf: z.core.$ZodErrorMap = issue => {
  if (issue.input === undefined) return REQUIRED;
  switch (issue.code) {
    case 'invalid_type':
      return TYPE_NAMES[issue.expected] ?? `must be of type ${issue.expected}`;
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${listOf(issue.values.map(String))}`;
    case 'too_small':
      return limit('at least', issue.origin, Number(issue.minimum));
    case 'too_big':
      return limit('at most', issue.origin, Number(issue.maximum));
    case 'invalid_union':
      return 'must have one of the accepted forms';
    default:
      return undefined;
  }
};

function limit(bound: 'at least' | 'at most', origin: string, count: number): string {
  const noun = origin === 'string' ? 'character' : origin === 'array' || origin === 'set' ? 'item' : undefined;
  const number = count.toLocaleString('en');
  return noun === undefined
    ? `must be ${bound} ${number}`
    : `must have ${bound} ${number} ${noun}${count === 1 ? '' : 's'}`;
}

function listOf(names: readonly string[]): string {
  return `${names.slice(0, MOST_NAMED).join(', ')}${names.length > MOST_NAMED ? ', …' : ''}`;
}

/** Returns the message for a missing field, including the message of the field itself. */
export function messageOfMissing(message: string): string {
  return message === REQUIRED ? message : `${REQUIRED}; it ${message}`;
}

/** Returns the message for an unknown field or parameter, including the most similar known name. */
export function messageOfUnknown(sort: 'field' | 'parameter', name: string, known: readonly string[]): string {
  const meant = nearestName(name, known);
  if (meant !== undefined) return `is not a ${sort} of this call; did you mean ${meant}?`;
  return known.length === 0
    ? `is not a ${sort} of this call`
    : `is not a ${sort} of this call; known: ${listOf(known)}`;
}
