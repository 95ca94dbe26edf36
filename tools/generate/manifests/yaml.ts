import { stringify } from 'yaml';

/** Returns objects as one YAML file. */
export function stringifyAll(objects: readonly object[], lineWidth = 110): string {
  return objects.map(object => stringify(object, { lineWidth, aliasDuplicateObjects: false })).join('---\n');
}
