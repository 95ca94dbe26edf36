import type { Route } from './contract/route.ts';
import { ACTIVATION_ROUTES } from './resources/activations/activations.ts';
import { BLOCK_ROUTES } from './resources/blocks/blocks.ts';
import { ENDPOINT_CHECK_ROUTES } from './resources/inbox/endpoint-checks.ts';
import { EVENT_ROUTES } from './resources/inbox/events.ts';
import { PULL_ROUTES } from './resources/inbox/pulling.ts';
import { REPLAY_ROUTES } from './resources/inbox/replays.ts';
import { SKIP_ROUTES } from './resources/inbox/skipping.ts';
import { EXPLAIN_ROUTES } from './resources/insight/explain.ts';
import { METRICS_ROUTES } from './resources/insight/metrics-series.ts';
import { PRODUCER_EVENT_ROUTES } from './resources/insight/producer-events.ts';
import { INTEGRATION_ROUTES } from './resources/integrations/integrations.ts';
import { INVITATION_ROUTES } from './resources/invitations/invitations.ts';
import { PACKAGE_STREAM_ROUTES } from './resources/packages/package-streams.ts';
import { PACKAGE_ROUTES } from './resources/packages/packages.ts';
import { STREAM_ROUTES } from './resources/streams/streams.ts';
import { PARTNER_CATALOG_ROUTES } from './resources/subscriptions/partner-catalog.ts';
import { PARTNER_INTEGRATION_ROUTES } from './resources/subscriptions/partner-integrations.ts';
import { SIGNING_SECRET_ROUTES } from './resources/subscriptions/signing-secrets.ts';
import { SUBSCRIPTION_ROUTES } from './resources/subscriptions/subscriptions.ts';
import { LIMIT_ROUTES } from './resources/workspaces/account-limits.ts';
import { ACCOUNT_ROUTES } from './resources/workspaces/accounts.ts';
import { INGRESS_KEY_ROUTES } from './resources/workspaces/ingress-keys.ts';
import { MEMBER_ROUTES } from './resources/workspaces/members.ts';
import { WORKSPACE_ROUTES } from './resources/workspaces/workspaces.ts';

/** All `/waas` routes. New resources must be added here. */
export const ROUTES: readonly Route[] = [
  ...STREAM_ROUTES,
  ...INTEGRATION_ROUTES,
  ...INVITATION_ROUTES,
  ...WORKSPACE_ROUTES,
  ...INGRESS_KEY_ROUTES,
  ...ACCOUNT_ROUTES,
  ...MEMBER_ROUTES,
  ...LIMIT_ROUTES,
  ...PACKAGE_ROUTES,
  ...PACKAGE_STREAM_ROUTES,
  ...BLOCK_ROUTES,
  ...ACTIVATION_ROUTES,
  ...EXPLAIN_ROUTES,
  ...PRODUCER_EVENT_ROUTES,
  ...METRICS_ROUTES,
  ...PARTNER_INTEGRATION_ROUTES,
  ...PARTNER_CATALOG_ROUTES,
  ...SUBSCRIPTION_ROUTES,
  ...SIGNING_SECRET_ROUTES,
  ...ENDPOINT_CHECK_ROUTES,
  ...EVENT_ROUTES,
  ...SKIP_ROUTES,
  ...PULL_ROUTES,
  ...REPLAY_ROUTES,
];
