import type { DesiredCondition } from '../../../src/controller/engine/conditions.ts';

/** Returns `Type=Status/Reason` of every condition of an outcome, in its order. */
export function listConditions({ conditions }: { readonly conditions: readonly DesiredCondition[] }): string[] {
  return conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`);
}
