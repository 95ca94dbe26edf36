import type { z } from 'zod';
import type { ProblemError } from '../core/problem.ts';
import { PATH_PARAMETERS, type PathParameter } from './fields.ts';
import { Refusal } from './refusal.ts';

type Place = 'body' | 'query';

function pointer(path: readonly PropertyKey[]): string {
  return path.map(word => `/${String(word).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function place(where: Place, path: readonly PropertyKey[]): Pick<ProblemError, 'pointer' | 'parameter'> {
  return where === 'body' ? { pointer: pointer(path) } : { parameter: String(path[0] ?? '') };
}

/** What zod found, with a JSON Pointer each; no value that was sent is repeated. */
export function errorsOf(where: Place, issues: readonly z.core.$ZodIssue[]): ProblemError[] {
  return issues.flatMap((issue): ProblemError[] => {
    if (issue.code !== 'unrecognized_keys') return [{ ...place(where, issue.path), detail: issue.message }];
    return issue.keys.map(key => ({ ...place(where, [...issue.path, key]), detail: 'is no field of this request' }));
  });
}

/** Checks a body or a query. @throws Refusal 422 `invalid_request` that names every fault */
export function validate<S extends z.ZodType>(where: Place, schema: S, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Refusal('invalid_request', { errors: errorsOf(where, parsed.error.issues) });
}

export function isPathParameter(name: string, value: string): boolean {
  return PATH_PARAMETERS[name as PathParameter].safeParse(value).success;
}

/** Checks the ids of a path. @throws Refusal 400 `malformed_id` */
export function validatePath(params: Readonly<Record<string, string>>): void {
  const errors = Object.entries(params).flatMap(([name, value]): ProblemError[] => {
    const parsed = PATH_PARAMETERS[name as PathParameter].safeParse(value);
    return parsed.success ? [] : [{ parameter: name, detail: parsed.error.issues[0]?.message ?? 'is malformed' }];
  });
  if (errors.length > 0) throw new Refusal('malformed_id', { errors });
}
