import type { DesiredCondition } from '../../../src/controller/engine/conditions.ts';

/** Returns `Type=Status/Reason` for all conditions of an outcome, in order. */
export function listConditions({ conditions }: { readonly conditions: readonly DesiredCondition[] }): string[] {
  return conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`);
}
