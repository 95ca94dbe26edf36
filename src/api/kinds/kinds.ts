import type { z } from 'zod';
import { Account } from './account.ts';
import { Activation } from './activation.ts';
import { Block } from './block.ts';
import { CatalogStream } from './catalog-stream.ts';
import { Integration } from './integration.ts';
import { Package } from './package.ts';
import { Subscription } from './subscription.ts';
import { Workspace } from './workspace.ts';

/** All kinds of the API. Add a line for a new kind. */
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

/** Name of a kind: `'CatalogStream'`. */
export type KindName = keyof typeof KINDS;

/** The object type of a kind, as the API server returns it. */
export type ObjectOf<K extends KindName> = z.infer<(typeof KINDS)[K]['schema']>;
