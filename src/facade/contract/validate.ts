import type { z } from 'zod';
import type { ProblemError } from '../../core/problems/problem.ts';
import { Refusal } from '../../http/refusal.ts';
import { PATH_PARAMETERS, type PathParameter } from './fields.ts';
import { messageOf, messageOfMissing, messageOfUnknown } from './validation-messages.ts';

type Place = 'body' | 'query';

/** The maximum number of errors in a response. */
const MOST_ERRORS = 20;

function pointer(path: readonly PropertyKey[]): string {
  return path.map(word => `/${String(word).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function place(where: Place, path: readonly PropertyKey[]): Pick<ProblemError, 'pointer' | 'parameter'> {
  return where === 'body' ? { pointer: pointer(path) } : { parameter: String(path[0] ?? '') };
}

/** Returns the names of all fields if the schema is an object. For any other schema, the result is empty. */
function fieldsOf(schema: z.ZodType): readonly string[] {
  const { shape } = schema as { readonly shape?: Readonly<Record<string, unknown>> };
  return shape === undefined ? [] : Object.keys(shape);
}

/** Returns the part of `value` at the given `path`. */
function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((part, word) => (part as Record<PropertyKey, unknown> | undefined | null)?.[word], value);
}

/**
 * Converts the issues from zod to errors. Each of them has a JSON Pointer or a parameter. The errors must never include
 * values from the request.
 */
function errorsOf(where: Place, schema: z.ZodType, value: unknown, found: readonly z.core.$ZodIssue[]) {
  // Zod also checks the length of a list that should be a string.
  const wrong = new Set(found.filter(({ code }) => code === 'invalid_type').map(({ path }) => pointer(path)));
  const issues = found.filter(({ code, path }) => code === 'invalid_type' || !wrong.has(pointer(path)));
  const errors = issues.slice(0, MOST_ERRORS).flatMap((issue): ProblemError[] => {
    if (issue.code === 'unrecognized_keys') {
      const known = issue.path.length === 0 ? fieldsOf(schema) : [];
      const sort = where === 'body' ? 'field' : 'parameter';
      return issue.keys.slice(0, MOST_ERRORS).map(key => ({
        ...place(where, [...issue.path, key]),
        detail: messageOfUnknown(sort, key, known),
      }));
    }
    if (where === 'query' && Array.isArray(valueAt(value, issue.path))) {
      return [{ ...place(where, issue.path), detail: 'may be given once' }];
    }
    const missing = issue.path.length > 0 && valueAt(value, issue.path) === undefined;
    return [{ ...place(where, issue.path), detail: missing ? messageOfMissing(issue.message) : issue.message }];
  });
  return errors.slice(0, MOST_ERRORS);
}

/** Validates a body or a query. @throws Refusal 422 `invalid_request`, which contains the first 20 errors */
export function validate<S extends z.ZodType>(where: Place, schema: S, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value, { error: messageOf });
  if (parsed.success) return parsed.data;
  throw new Refusal('invalid_request', { errors: errorsOf(where, schema, value, parsed.error.issues) });
}

export function isPathParameter(name: string, value: string): boolean {
  return PATH_PARAMETERS[name as PathParameter].safeParse(value).success;
}

/** Validates all ids in a path. @throws Refusal 400 `malformed_id`, or 404 `not_found` if one of the ids is empty */
export function validatePath(params: Readonly<Record<string, string>>): void {
  const empty = Object.keys(params).find(name => params[name] === '');
  if (empty !== undefined) {
    throw new Refusal('not_found', `The path has no ${empty}. Add it or remove the last slash.`);
  }
  const errors = Object.entries(params).flatMap(([name, value]): ProblemError[] => {
    const parsed = PATH_PARAMETERS[name as PathParameter].safeParse(value);
    return parsed.success ? [] : [{ parameter: name, detail: parsed.error.issues[0]?.message ?? 'is not valid' }];
  });
  if (errors.length > 0) throw new Refusal('malformed_id', { errors });
}
