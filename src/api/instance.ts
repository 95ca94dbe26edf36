import { z } from 'zod';
import type { PrinterColumn } from './kind.ts';
import type { CelRule } from './rules.ts';

/** Maximum length of an instance name, which is a DNS label. */
const MOST_CHARACTERS = 32;

/** Matches the name of an instance. */
export const INSTANCE = new RegExp(`^[a-z0-9]([-a-z0-9]{0,${MOST_CHARACTERS - 2}}[a-z0-9])?$`);

/** Name of the default installation, whose objects have no `spec.instance`. */
export const DEFAULT_INSTANCE = '';

/** Returns the schema for `spec.instance`, the installation that is responsible for the object. */
export function instanceField() {
  return z
    .string()
    .min(1)
    .max(MOST_CHARACTERS)
    .regex(INSTANCE)
    .describe(
      'Installation that is responsible for this object, as specified by SLUICE_INSTANCE. All other installations in the cluster ignore it. Defaults to the installation without a name. Immutable.',
    )
    .optional();
}

/** The instance can't be changed, removed, or added later. */
export const INSTANCE_IS_IMMUTABLE: CelRule = {
  rule: 'has(self.instance) == has(oldSelf.instance) && (!has(self.instance) || self.instance == oldSelf.instance)',
  message: 'instance is immutable',
  fieldPath: '.instance',
};

/** Field for field selectors, such as `kubectl get workspaces --field-selector spec.instance=blue`. */
export const INSTANCE_FIELD = '.spec.instance';

/**
 * Shows the installation. Helps to find objects of installations that do not exist, because their status is never set.
 */
export const INSTANCE_COLUMN: PrinterColumn = {
  name: 'Instance',
  type: 'string',
  jsonPath: INSTANCE_FIELD,
  description: 'Installation that is responsible for this object. Empty for the installation without a name.',
};

/** Returns the name of the installation that is responsible for an Account or a Workspace. */
export function instanceOf({ spec }: { readonly spec: { readonly instance?: string | undefined } }): string {
  return spec.instance ?? DEFAULT_INSTANCE;
}

/** Returns the fields that assign a new Account or Workspace to an installation. */
export function instanceFields(instance: string): { readonly instance?: string } {
  return instance === DEFAULT_INSTANCE ? {} : { instance };
}
