import { accountCases } from './account.ts';
import { activationCases } from './activation.ts';
import { blockCases } from './block.ts';
import type { ManifestCase } from './case.ts';
import { catalogStreamCases } from './catalog-stream.ts';
import { integrationCases } from './integration.ts';
import { packageCases } from './package.ts';
import { subscriptionCases } from './subscription.ts';
import { workspaceCases } from './workspace.ts';

/** All manifests that are validated by the API server and the schemas. */
export const MANIFESTS: readonly ManifestCase[] = [
  ...accountCases,
  ...workspaceCases,
  ...catalogStreamCases,
  ...packageCases,
  ...integrationCases,
  ...activationCases,
  ...blockCases,
  ...subscriptionCases,
];
