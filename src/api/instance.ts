import { z } from 'zod';
import type { PrinterColumn } from './kind.ts';
import { type CelRule, withPattern } from './rules.ts';

/** The maximum length of an instance name, which is a DNS label. */
const MOST_CHARACTERS = 32;

/** Used to check the name of an instance. */
export const INSTANCE = new RegExp(`^[a-z0-9]([-a-z0-9]{0,${MOST_CHARACTERS - 2}}[a-z0-9])?$`);

export const MUST_BE_INSTANCE = `must be a name of up to ${MOST_CHARACTERS} lowercase letters, digits and hyphens, such as blue`;

/** The name of the default installation. The objects of this installation don't have a `spec.instance`. */
export const DEFAULT_INSTANCE = '';

/** Returns the schema for `spec.instance`, which specifies the installation that is responsible for the object. */
export function instanceField() {
  return withPattern(z.string().min(1).max(MOST_CHARACTERS), INSTANCE, MUST_BE_INSTANCE)
    .describe(
      'The installation that manages this object (SLUICE_INSTANCE). All others in the cluster ignore it. Defaults to the installation without a name. Immutable.',
    )
    .optional();
}

/** Users cannot change, remove, or add the instance later. */
export const INSTANCE_IS_IMMUTABLE: CelRule = {
  rule: 'has(self.instance) == has(oldSelf.instance) && (!has(self.instance) || self.instance == oldSelf.instance)',
  message: 'instance is immutable',
  fieldPath: '.instance',
};

/** The field for field selectors, such as `kubectl get workspaces --field-selector spec.instance=blue`. */
export const INSTANCE_FIELD = '.spec.instance';

/**
 * Shows the installation name. The column helps to find objects of installations that do not exist because nobody sets
 * their status.
 */
export const INSTANCE_COLUMN: PrinterColumn = {
  name: 'Instance',
  type: 'string',
  jsonPath: INSTANCE_FIELD,
  description: 'The installation that is responsible for this object. Empty for the installation without a name.',
};

/** Returns the name of the installation that is responsible for the given Account or Workspace. */
export function instanceOf({ spec }: { readonly spec: { readonly instance?: string | undefined } }): string {
  return spec.instance ?? DEFAULT_INSTANCE;
}

/** Returns the fields to set if a new Account or Workspace should belong to an installation. */
export function instanceFields(instance: string): { readonly instance?: string } {
  return instance === DEFAULT_INSTANCE ? {} : { instance };
}
