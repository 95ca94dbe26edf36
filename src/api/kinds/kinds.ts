import type { z } from 'zod';
import { Account } from './account.ts';
import { Activation } from './activation.ts';
import { Block } from './block.ts';
import { CatalogStream } from './catalog-stream.ts';
import { Integration } from './integration.ts';
import { Package } from './package.ts';
import { Subscription } from './subscription.ts';
import { Workspace } from './workspace.ts';

/** All kinds in this API. New kinds should be added here. */
export const KINDS = {
  Account,
  Workspace,
  CatalogStream,
  Package,
  Integration,
  Activation,
  Block,
  Subscription,
} as const;

/** The kind name, e.g. `'CatalogStream'`. */
export type KindName = keyof typeof KINDS;

/** The type of a kind's objects, as returned by the API server. */
export type ObjectOf<K extends KindName> = z.infer<(typeof KINDS)[K]['schema']>;
