import { ACCOUNT_ROUTES } from './resources/accounts.ts';
import { ACTIVATION_ROUTES } from './resources/activations.ts';
import { BLOCK_ROUTES } from './resources/blocks.ts';
import { ENDPOINT_CHECK_ROUTES } from './resources/endpoint-checks.ts';
import { EVENT_ROUTES } from './resources/events.ts';
import { EXPLAIN_ROUTES } from './resources/explain.ts';
import { INGRESS_KEY_ROUTES } from './resources/ingress-keys.ts';
import { INTEGRATION_ROUTES } from './resources/integrations.ts';
import { INVITATION_ROUTES } from './resources/invitations.ts';
import { METRICS_ROUTES } from './resources/metrics-series.ts';
import { PACKAGE_STREAM_ROUTES } from './resources/package-streams.ts';
import { PACKAGE_ROUTES } from './resources/packages.ts';
import { PARTNER_CATALOG_ROUTES } from './resources/partner-catalog.ts';
import { PRODUCER_EVENT_ROUTES } from './resources/producer-events.ts';
import { PULL_ROUTES } from './resources/pulling.ts';
import { REPLAY_ROUTES } from './resources/replays.ts';
import { SIGNING_SECRET_ROUTES } from './resources/signing-secrets.ts';
import { SKIP_ROUTES } from './resources/skipping.ts';
import { STREAM_ROUTES } from './resources/streams.ts';
import { SUBSCRIPTION_ROUTES } from './resources/subscriptions.ts';
import { WORKSPACE_ROUTES } from './resources/workspaces.ts';
import type { Route } from './route.ts';

/** Every route of `/waas`. A new resource is one more line here. */
export const ROUTES: readonly Route[] = [
  ...STREAM_ROUTES,
  ...INTEGRATION_ROUTES,
  ...INVITATION_ROUTES,
  ...WORKSPACE_ROUTES,
  ...INGRESS_KEY_ROUTES,
  ...ACCOUNT_ROUTES,
  ...PACKAGE_ROUTES,
  ...PACKAGE_STREAM_ROUTES,
  ...BLOCK_ROUTES,
  ...ACTIVATION_ROUTES,
  ...EXPLAIN_ROUTES,
  ...PRODUCER_EVENT_ROUTES,
  ...METRICS_ROUTES,
  ...PARTNER_CATALOG_ROUTES,
  ...SUBSCRIPTION_ROUTES,
  ...SIGNING_SECRET_ROUTES,
  ...ENDPOINT_CHECK_ROUTES,
  ...EVENT_ROUTES,
  ...SKIP_ROUTES,
  ...PULL_ROUTES,
  ...REPLAY_ROUTES,
];
