import { stringify } from 'yaml';

/** Kubernetes and Helm use YAML 1.1, in which an unquoted `yes` is a boolean. */
const OPTIONS = { aliasDuplicateObjects: false, compat: 'yaml-1.1' } as const;

/** Returns one object as YAML. */
export function stringifyOne(object: object, lineWidth = 110): string {
  return stringify(object, { ...OPTIONS, lineWidth });
}

/** Returns objects as one YAML file. */
export function stringifyAll(objects: readonly object[], lineWidth = 110): string {
  return objects.map(object => stringifyOne(object, lineWidth)).join('---\n');
}
